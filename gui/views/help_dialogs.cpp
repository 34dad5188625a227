#include "views/help_dialogs.h"

#include <QAction>
#include <QDialog>
#include <QDialogButtonBox>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "models/terms.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr QSize kSize{640, 520};

/// A dialog around a text, which is given to `fill`.
QDialog* make_dialog(QWidget* parent, const QString& title, const char* name) {
  auto* dialog = new QDialog(parent);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->setObjectName(QLatin1String(name));
  dialog->resize(kSize);
  return dialog;
}

QTextBrowser* make_browser(QDialog* dialog, const QString& name) {
  auto* text = new QTextBrowser(dialog);
  text->setAccessibleName(name);
  text->setOpenExternalLinks(true);
  text->setFrameShape(QFrame::NoFrame);
  return text;
}

void finish(QDialog* dialog, QVBoxLayout* layout) {
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
  layout->addWidget(buttons);
  dialog->show();
}

QString html_of(const std::vector<Term>& terms) {
  QString out;
  for (const Term& term : terms)
    out += QStringLiteral("<p><b>%1</b><br>%2</p>")
               .arg(term.name.toHtmlEscaped(), term.meaning.toHtmlEscaped());
  return out;
}

QString row(const QString& keys, const QString& what) {
  return QStringLiteral("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>")
      .arg(keys.toHtmlEscaped(), what.toHtmlEscaped());
}

/// The name of an action or a button without its mnemonic.
QString plain(QString name) {
  return name.remove(QLatin1Char('&')).simplified();
}

}  // namespace

void HelpDialogs::show_terms(QWidget* parent) {
  QDialog* dialog = make_dialog(parent, tr("Terms"), "terms");
  auto* filter = new QLineEdit(dialog);
  filter->setPlaceholderText(tr("Find a term"));
  filter->setAccessibleName(tr("Find a term"));
  filter->setObjectName(QStringLiteral("term"));
  add_clear_button(filter);
  QTextBrowser* text = make_browser(dialog, tr("Terms"));
  text->setHtml(html_of(Terms::all()));
  QObject::connect(filter, &QLineEdit::textChanged, text, [text](const QString& wanted) {
    const auto found = Terms::with(wanted);
    text->setHtml(found.empty() ? HelpDialogs::tr("No term has these words.") : html_of(found));
  });
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(filter);
  layout->addWidget(text, 1);
  finish(dialog, layout);
}

QString HelpDialogs::shortcuts() {
  return row(tr("Return"), tr("in the first field of a page: go on")) +
         row(QStringLiteral("Alt+N, Alt+B"), tr("the next page, the one before")) +
         row(tr("Tab, Shift+Tab"), tr("the next field, the one before")) +
         row(tr("← →"), tr("in a bar, a timeline or a plot: the part or point beside it")) +
         row(QStringLiteral("P"), tr("in the timeline: the peak")) +
         row(tr("Home, End"), tr("in the timeline: its begin and its end"));
}

void HelpDialogs::show_shortcuts(QWidget* parent) {
  QDialog* dialog = make_dialog(parent, tr("Keyboard shortcuts"), "shortcuts");
  QString rows;
  for (const auto* button : parent->findChildren<QToolButton*>())
    if (!button->shortcut().isEmpty())
      rows += row(button->shortcut().toString(QKeySequence::NativeText), plain(button->text()));
  for (const auto* action : parent->findChildren<QAction*>())
    if (!action->shortcut().isEmpty() && !action->text().isEmpty())
      rows += row(action->shortcut().toString(QKeySequence::NativeText), plain(action->text()));
  QTextBrowser* text = make_browser(dialog, tr("Keyboard shortcuts"));
  text->setHtml(QStringLiteral("<table>%1%2</table>").arg(rows, shortcuts()));
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(text, 1);
  finish(dialog, layout);
}

void HelpDialogs::show_about(QWidget* parent) {
  QDialog* dialog = make_dialog(parent, tr("About shardplan"), "about");
  dialog->resize(kSize / 1.5);
  QTextBrowser* text = make_browser(dialog, tr("About shardplan"));
  text->setHtml(
      QStringLiteral("<h2>shardplan %1</h2><p>%2</p><p>%3</p><p>%4</p>")
          .arg(QCoreApplication::applicationVersion().toHtmlEscaped(),
               tr("Will this training job fit on these GPUs, how fast will it run, what will it "
                  "cost, and what should be changed?")
                   .toHtmlEscaped(),
               tr("Answers are computed on this machine; nothing is sent anywhere. The command "
                  "line gives the same numbers.")
                   .toHtmlEscaped(),
               tr("Licence: Apache-2.0. Made with Qt %1, which is under the LGPL.")
                   .arg(QLatin1String(qVersion()))
                   .toHtmlEscaped()));
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(text, 1);
  finish(dialog, layout);
}

}  // namespace shardplan::gui
