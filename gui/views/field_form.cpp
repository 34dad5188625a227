#include "views/field_form.h"

#include <QComboBox>
#include <QGridLayout>
#include <QSpinBox>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/messages.h"
#include "models/option_field.h"
#include "models/text.h"
#include "views/report_style.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

/// What it is, and where a job says it.
QString help_of(const TrainingField& field) {
  QString key = text(field.pointer).mid(1).replace(QLatin1Char('/'), QLatin1Char('.'));
  const QString where = FieldForm::tr("In a job: %1.").arg(key);
  return field.help.isEmpty() ? where : QStringLiteral("%1. %2").arg(field.help, where);
}

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
    rows_.push_back({std::move(field), nullptr, nullptr, nullptr, nullptr});
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    row.editor = make_editor(i);
    row.editor->setAccessibleName(row.field.label);
    row.editor->setObjectName(QString::fromStdString(row.field.pointer));
    row.label = new QLabel(row.field.label, this);
    row.label->setBuddy(row.editor);
    row.error = make_error(this);
    for (QWidget* w : {row.editor, static_cast<QWidget*>(row.label)})
      explain(w, row.field.label, help_of(row.field));
    row.standing = new QLabel(this);
    row.standing->setForegroundRole(QPalette::PlaceholderText);
    const int at = 2 * static_cast<int>(i);
    layout->addWidget(row.label, at, 0);
    layout->addWidget(row.editor, at, 1);
    layout->addWidget(row.standing, at, 2);
    layout->addWidget(row.error, at + 1, 1, 1, 2);
  }
  if (!rows_.empty()) setFocusProxy(rows_.front().editor);
  layout->setColumnStretch(1, 1);
  layout->setVerticalSpacing(half_space());
  layout->setRowStretch(2 * static_cast<int>(rows_.size()), 1);
}

QWidget* FieldForm::make_editor(std::size_t row) {
  const TrainingField& field = rows_[row].field;
  const auto write = [this, row](const QVariant& value) {
    if (is_refreshing_) return;
    if (session_.answer().job)
      rows_[row].field.write(session_, value);
    else  // there is no plan to change: the field alone
      session_.document().set(rows_[row].field.pointer, json_of(value));
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
  const bool applies = job ? row.field.applies_to(*job) : !row.field.applies || is_wrong(row);
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
  if (auto* box = qobject_cast<QSpinBox*>(row.editor)) {
    const bool may_be_open = job && row.field.can_be_open(*job);
    box->setMinimum(may_be_open ? 0 : row.field.least);
    box->setSpecialValueText(may_be_open ? row.field.open_words : QString());
    box->setValue(value.toInt());
  }
  const bool is_given = said && !session_.document().assumes(row.field.pointer);
  row.standing->setText(is_given                                 ? tr("given")
                        : field_of(text, "/framework/ds_config") ? tr("ds_config or default")
                                                                 : tr("assumed"));
}

/// An error names a field by its key in the job: "workload.micro_batch".
bool FieldForm::is_wrong(const Row& row) const {
  const std::optional<Diagnostic>& error = session_.answer().error;
  std::string key = row.field.pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  // Choices of where states are kept are of two fields, and mean nothing without a plan.
  return error && error->key == key && row.field.pointer != "/framework/offload_optimizer";
}

void FieldForm::refresh() {
  is_refreshing_ = true;
  shows_error_ = false;
  for (const Row& row : rows_) {
    refresh_row(row);
    const bool is_here = is_wrong(row) && !row.editor->isHidden();
    show_error(row.error, is_here ? Messages::of(*session_.answer().error) : QString());
    shows_error_ = shows_error_ || is_here;
  }
  is_refreshing_ = false;
}

}  // namespace shardplan::gui
