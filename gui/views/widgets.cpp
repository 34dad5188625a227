#include "views/widgets.h"

#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QTextDocumentFragment>

#include "models/rows_model.h"

namespace shardplan::gui {

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
  label->setText(error);
  label->setVisible(!error.isEmpty());
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

QGroupBox* make_box(const QString& title, QLayout* layout, QWidget* parent) {
  auto* box = new QGroupBox(title, parent);
  box->setLayout(layout);
  return box;
}

QString spoken(const QString& html) {
  return QTextDocumentFragment::fromHtml(html).toPlainText();
}

void set_hint(QWidget* widget, const QString& html) {
  widget->setToolTip(html);
  widget->setAccessibleDescription(spoken(html));
}

}  // namespace shardplan::gui
