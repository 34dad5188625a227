#include "views/widgets.h"

#include <QAction>
#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QStyle>
#include <QToolButton>

#include "models/rows_model.h"
#include "models/terms.h"

namespace shardplan::gui {
namespace {

constexpr const char* kErrorSign = "error_sign";

}  // namespace

QLabel* make_text(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

QLabel* make_error(QWidget* parent) {
  auto* label = make_text(parent);
  QFont font = label->font();
  font.setItalic(true);
  label->setFont(font);
  label->setTextFormat(Qt::PlainText);
  label->hide();
  return label;
}

void show_error(QLabel* label, const QString& error) {
  label->setText(error.isEmpty() ? QString() : QStringLiteral("⚠ ") + error);
  label->setAccessibleName(error);
  label->setVisible(!error.isEmpty());
}

void mark(QLineEdit* edit, const QString& error) {
  auto* sign = edit->findChild<QAction*>(QLatin1String(kErrorSign), Qt::FindDirectChildrenOnly);
  if (error.isEmpty()) {
    if (sign == nullptr) return;
    edit->removeAction(sign);
    delete sign;
    edit->setAccessibleDescription({});
    return;
  }
  if (sign == nullptr) {
    sign = edit->addAction(edit->style()->standardIcon(QStyle::SP_MessageBoxWarning),
                           QLineEdit::TrailingPosition);
    sign->setObjectName(QLatin1String(kErrorSign));
    for (auto* button : edit->findChildren<QToolButton*>())
      if (button->accessibleName().isEmpty()) button->setFocusPolicy(Qt::NoFocus);
  }
  sign->setText(error);
  sign->setToolTip(error);
  edit->setAccessibleDescription(error);
}

void show_error_at(QLineEdit* edit, QLabel* label, const QString& error) {
  mark(edit, error);
  show_error(label, error);
}

void explain(QWidget* widget, const QString& title, const QString& help) {
  if (widget->toolTip().isEmpty()) widget->setToolTip(help.isEmpty() ? title : help);
  widget->setWhatsThis(Terms::explained(title, help));
}

QTableView* make_table(QAbstractItemModel* model, const QString& name, QWidget* parent,
                       bool sorts) {
  auto* table = new QTableView(parent);
  table->setAccessibleName(name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setShowGrid(false);
  table->setAlternatingRowColors(true);
  table->setWordWrap(false);
  table->setTabKeyNavigation(false);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 6);
  if (sorts) {
    auto* proxy = new QSortFilterProxyModel(table);
    proxy->setSourceModel(model);
    proxy->setSortRole(kValueRole);
    proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    proxy->setFilterKeyColumn(-1);
    table->setModel(proxy);
    table->setSortingEnabled(true);
    table->sortByColumn(-1, Qt::AscendingOrder);
  } else {
    table->setModel(model);
  }
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setStretchLastSection(true);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  return table;
}

void on_chosen(QTableView* table, const std::function<void(const QModelIndex&)>& action) {
  QObject::connect(table->selectionModel(), &QItemSelectionModel::selectionChanged, table,
                   [action](const QItemSelection& chosen) {
                     if (!chosen.isEmpty()) action(chosen.indexes().front());
                   });
  // The row may be chosen still, and something else have been typed since.
  QObject::connect(table, &QAbstractItemView::clicked, table, action);
}

void show_in(QLineEdit* edit, const QString& words) {
  if (edit->text().trimmed() != words) edit->setText(words);
}

void add_clear_button(QLineEdit* edit) {
  edit->setClearButtonEnabled(true);
  for (auto* button : edit->findChildren<QToolButton*>())
    button->setAccessibleName(QLineEdit::tr("Clear"));
}

QScrollArea* make_scroll(QWidget* content, QWidget* parent) {
  auto* scroll = new QScrollArea(parent);
  scroll->setWidget(content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  return scroll;
}

QGroupBox* make_box(const QString& title, QLayout* layout, QWidget* parent) {
  auto* box = new QGroupBox(title, parent);
  box->setLayout(layout);
  return box;
}

/// By hand: a text document for each hint takes longer than the estimate that it explains.
QString spoken(const QString& html) {
  QString out;
  out.reserve(html.size());
  for (qsizetype at = 0; at < html.size(); ++at) {
    if (html[at] != QLatin1Char('<')) {
      out += html[at];
      continue;
    }
    const qsizetype end = html.indexOf(QLatin1Char('>'), at);
    if (end < 0) break;
    const QStringView tag = QStringView(html).mid(at + 1, end - at - 1);
    if ((tag == u"br" || tag == u"/p") && end + 1 < html.size()) out += QLatin1Char('\n');
    at = end;
  }
  return out.replace(QStringLiteral("&lt;"), QStringLiteral("<"))
      .replace(QStringLiteral("&gt;"), QStringLiteral(">"))
      .replace(QStringLiteral("&quot;"), QStringLiteral("\""))
      .replace(QStringLiteral("&amp;"), QStringLiteral("&"));
}

void set_ink(QWidget* label, const QColor& colour) {
  QPalette ink = label->palette();
  if (ink.color(QPalette::WindowText) == colour) return;
  ink.setColor(QPalette::WindowText, colour);
  label->setPalette(ink);
}

void set_hint(QWidget* widget, const QString& html) {
  if (widget->toolTip() == html) return;
  widget->setToolTip(html);
  widget->setAccessibleDescription(spoken(html));
}

}  // namespace shardplan::gui
