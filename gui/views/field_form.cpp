#include "views/field_form.h"

#include <QComboBox>
#include <QGridLayout>
#include <QSpinBox>
#include <nlohmann/json.hpp>

#include "job/fields.h"

namespace shardplan::gui {
namespace {

/// Leaves a list as it is that has the same already: a person may have it open.
void offer(QComboBox* box, const std::vector<Choice>& choices) {
  bool same = box->count() == static_cast<int>(choices.size());
  for (int i = 0; same && i < box->count(); ++i)
    same = box->itemData(i) == choices[static_cast<std::size_t>(i)].value;
  if (same) return;
  box->clear();
  for (const Choice& choice : choices) box->addItem(choice.label, choice.value);
}

}  // namespace

FieldForm::FieldForm(Session& session, std::vector<TrainingField> fields, QWidget* parent)
    : QWidget(parent), session_(session) {
  auto* layout = new QGridLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  for (TrainingField& field : fields)
    rows_.push_back({std::move(field), nullptr, nullptr, nullptr});
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    row.editor = make_editor(i);
    row.editor->setAccessibleName(row.field.label);
    row.editor->setObjectName(QString::fromStdString(row.field.pointer));
    row.label = new QLabel(row.field.label, this);
    row.label->setBuddy(row.editor);
    row.label->setToolTip(row.field.help);
    row.standing = new QLabel(this);
    row.standing->setForegroundRole(QPalette::PlaceholderText);
    const int at = static_cast<int>(i);
    layout->addWidget(row.label, at, 0);
    layout->addWidget(row.editor, at, 1);
    layout->addWidget(row.standing, at, 2);
  }
  if (!rows_.empty()) setFocusProxy(rows_.front().editor);
  layout->setColumnStretch(1, 1);
  layout->setRowStretch(static_cast<int>(rows_.size()), 1);
}

QWidget* FieldForm::make_editor(std::size_t row) {
  const TrainingField& field = rows_[row].field;
  const auto write = [this, row](const QVariant& value) {
    if (!is_refreshing_) rows_[row].field.write(session_, value);
  };
  if (!field.choices.empty()) {
    auto* box = new QComboBox(this);
    connect(box, &QComboBox::activated, this, [box, write](int at) { write(box->itemData(at)); });
    return box;
  }
  auto* box = new QSpinBox(this);
  box->setRange(field.least, field.most);
  box->setGroupSeparatorShown(true);
  box->setKeyboardTracking(false);
  connect(box, &QSpinBox::valueChanged, this, [write](int value) { write(value); });
  return box;
}

/// Without a job, which may be because of a choice that was made here, what every job has can be
/// chosen still.
void FieldForm::refresh_row(const Row& row) {
  const std::optional<Job>& job = session_.answer().job;
  const bool applies = job ? row.field.applies_to(*job) : !row.field.applies;
  for (QWidget* w :
       {row.editor, static_cast<QWidget*>(row.label), static_cast<QWidget*>(row.standing)})
    w->setVisible(applies);
  if (!applies) return;
  const Json& text = session_.document().json();
  const auto said = field_of(text, row.field.pointer);
  const QVariant value = job ? row.field.read(*job)
                         : said && said->is_string()
                             ? QVariant(QString::fromStdString(said->get<std::string>()))
                             : QVariant();
  if (auto* box = qobject_cast<QComboBox*>(row.editor)) {
    offer(box, job ? row.field.offered(*job) : row.field.choices);
    box->setCurrentIndex(box->findData(value));
  }
  if (auto* box = qobject_cast<QSpinBox*>(row.editor)) box->setValue(value.toInt());
  const bool is_given = said && !session_.document().assumes(row.field.pointer);
  row.standing->setText(is_given                                 ? tr("given")
                        : field_of(text, "/framework/ds_config") ? tr("ds_config or default")
                                                                 : tr("assumed"));
}

void FieldForm::refresh() {
  is_refreshing_ = true;
  for (const Row& row : rows_) refresh_row(row);
  is_refreshing_ = false;
}

}  // namespace shardplan::gui
