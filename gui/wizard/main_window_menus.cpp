// The window's menus beside File: editing, colours and language, help.
#include <QDesktopServices>
#include <QMenuBar>
#include <QUrl>
#include <QWhatsThis>

#include "models/documentation.h"
#include "views/colours.h"
#include "views/help_dialogs.h"
#include "wizard/main_window.h"

namespace shardplan::gui {

/// A field that has words of its own, which the job has not yet, undoes those; everywhere else undo
/// and redo are the job's.
void MainWindow::make_edit_menu() {
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  QUndoStack& steps = session_.document().undo_stack();
  QAction* undo = steps.createUndoAction(this, tr("Undo"));
  undo->setShortcuts(QKeySequence::Undo);
  undo->setObjectName(QStringLiteral("undo"));
  QAction* redo = steps.createRedoAction(this, tr("Redo"));
  redo->setShortcuts(QKeySequence::Redo);
  redo->setObjectName(QStringLiteral("redo"));
  edit->addActions({undo, redo});
  QCoreApplication::instance()->installEventFilter(this);
}

void MainWindow::make_view_menu() {
  QMenu* view = menuBar()->addMenu(tr("&View"));
  const auto add_theme = [&](const QString& name, Theme theme) {
    view->addAction(name, this, [this, theme] { Q_EMIT theme_chosen(static_cast<int>(theme)); });
  };
  add_theme(tr("Colours of the &system"), Theme::system);
  add_theme(tr("&Light"), Theme::light);
  add_theme(tr("&Dark"), Theme::dark);
  QMenu* language = menuBar()->addMenu(tr("&Language"));
  const std::pair<const char*, const char*> kLanguages[] = {
      {"English", "en"}, {"日本語", "ja"}, {"한국어", "ko"}};
  for (const auto& [name, code] : kLanguages)
    language->addAction(QString::fromUtf8(name), this,
                        [this, code = QString::fromLatin1(code)] { Q_EMIT language_chosen(code); });
}

void MainWindow::make_help_menu() {
  QMenu* help = menuBar()->addMenu(tr("&Help"));
  QAction* what = QWhatsThis::createAction(this);
  what->setText(tr("&What is this?"));
  what->setObjectName(QStringLiteral("what_is_this"));
  help->addAction(what);
  help->addAction(tr("&Terms…"), this, [this] { HelpDialogs::show_terms(this); });
  help->addAction(tr("&Documentation"), QKeySequence::HelpContents, this,
                  &MainWindow::show_documentation);
  help->addAction(tr("&Keyboard shortcuts…"), this, [this] { HelpDialogs::show_shortcuts(this); });
  help->addSeparator();
  help->addAction(tr("&About shardplan…"), this, [this] { HelpDialogs::show_about(this); });
}

void MainWindow::show_documentation() {
  const QString page = documentation();
  if (page.isEmpty() || !QDesktopServices::openUrl(QUrl::fromLocalFile(page)))
    tell_problem(page.isEmpty() ? tr("The documentation is not on this machine: it is the folder "
                                     "docs of the sources, or the package shardplan-doc.")
                                : tr("%1 cannot be opened here").arg(page));
}

}  // namespace shardplan::gui
