#include "views/option_list.h"

#include <QComboBox>
#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "models/core_words.h"
#include "models/text.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

/// A list for what has choices, a line for all else; the first choice, and no text, leave it open.
class OptionDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& /*style*/,
                        const QModelIndex& at) const override {
    const OptionRow& row = row_of(at);
    const OptionInfo& option = *row.info;
    const QString name = at.siblingAtColumn(OptionsModel::kKey).data().toString();
    const bool is_list = option.kind == OptionKind::texts || option.kind == OptionKind::integers;
    if (is_list || (option.choices.empty() && option.kind != OptionKind::boolean)) {
      auto* line = new QLineEdit(parent);
      const QString range = OptionsModel::range(option);
      line->setPlaceholderText(range.isEmpty() ? OptionsModel::open_words(row) : range);
      line->setAccessibleName(name);
      return line;
    }
    auto* box = new QComboBox(parent);
    box->setAccessibleName(name);
    box->addItem(OptionsModel::open_words(row), QString());
    for (const NamedValue& choice : option.choices)
      box->addItem(choice.label.empty()
                       ? text(choice.name)
                       : QStringLiteral("%1 – %2").arg(text(choice.name), words(choice.label)),
                   text(choice.name));
    if (option.choices.empty())
      for (const char* truth : {"true", "false"})
        box->addItem(QLatin1String(truth), QLatin1String(truth));
    return box;
  }

  void setEditorData(QWidget* editor, const QModelIndex& at) const override {
    const QString value = at.data(Qt::EditRole).toString();
    if (auto* box = qobject_cast<QComboBox*>(editor))
      box->setCurrentIndex(std::max(0, box->findData(value)));
    if (auto* line = qobject_cast<QLineEdit*>(editor)) line->setText(value);
  }

  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& at) const override {
    if (const auto* box = qobject_cast<const QComboBox*>(editor))
      model->setData(at, box->currentData());
    if (const auto* line = qobject_cast<const QLineEdit*>(editor)) model->setData(at, line->text());
  }

 private:
  static const OptionRow& row_of(const QModelIndex& at) {
    const auto* proxy = static_cast<const QSortFilterProxyModel*>(at.model());
    return static_cast<const OptionsModel*>(proxy->sourceModel())
        ->row(proxy->mapToSource(at).row());
  }
};

}  // namespace

OptionList::OptionList(Session& session, QWidget* parent)
    : QWidget(parent), model_(new OptionsModel(session, this)), filter_(new QLineEdit(this)) {
  filter_->setObjectName(QStringLiteral("option_filter"));
  filter_->setPlaceholderText(tr("Filter: a part of a name, or of what it is"));
  filter_->setAccessibleName(tr("Filter the options"));
  add_clear_button(filter_);
  table_ = make_table(model_, tr("All options"), this, true);
  table_->setObjectName(QStringLiteral("options"));
  table_->setSortingEnabled(false);
  table_->setItemDelegateForColumn(OptionsModel::kValue, new OptionDelegate(table_));
  table_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed |
                          QAbstractItemView::SelectedClicked | QAbstractItemView::AnyKeyPressed);
  auto* header = table_->horizontalHeader();
  header->setSectionResizeMode(QHeaderView::Interactive);
  const int letter = fontMetrics().averageCharWidth();
  header->resizeSection(OptionsModel::kKey, 34 * letter);
  header->resizeSection(OptionsModel::kValue, 28 * letter);
  about_ = make_text(this);
  about_->setObjectName(QStringLiteral("option_about"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(space(), space(), space(), half_space());
  layout->addWidget(filter_);
  layout->addWidget(table_, 1);
  layout->addWidget(about_);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& typed) {
    static_cast<QSortFilterProxyModel*>(table_->model())->setFilterFixedString(typed);
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          &OptionList::show_chosen);
  show_chosen();
}

void OptionList::refresh() {
  model_->refresh();
  show_chosen();
}

void OptionList::show_chosen() {
  const QModelIndex now = table_->currentIndex();
  about_->setText(now.isValid() ? now.data(Qt::ToolTipRole).toString()
                                : tr("Choose an option to read what it is; F2 or a double click "
                                     "changes its value."));
}

}  // namespace shardplan::gui
