#include "wizard/rent_page.h"

#include <QHBoxLayout>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "job/fields.h"
#include "load/model.h"
#include "models/messages.h"
#include "models/text.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr int kLongest = 1 << 20, kMostNodes = 512;
constexpr const char* kTyped = "question";

}  // namespace

RentPage::RentPage(Session& session, QWidget* parent)
    : Page(session, tr("Rent"), parent), rent_(session) {
  error_ = make_error(this);
  error_->setObjectName(QStringLiteral("rent_error"));
  summary_ = new TextLabel(TextLabel::Lines::wrapped, this);
  summary_->setObjectName(QStringLiteral("rent_summary"));
  QFont bold = font();
  bold.setBold(true);
  summary_->setFont(bold);
  source_ = new TextLabel(TextLabel::Lines::wrapped, this);
  source_->setObjectName(QStringLiteral("rent_source"));
  source_->setForegroundRole(QPalette::PlaceholderText);
  plot_ = new PlotView(this);
  plot_->setObjectName(QStringLiteral("rent_plot"));
  plot_->setAccessibleName(tr("Machines by days and dollars"));
  table_ = make_table(rent_.model(), tr("Machines to rent, the cheapest first"), this, true);
  table_->setObjectName(QStringLiteral("rent_machines"));
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(make_question());
  layout->addWidget(error_);
  layout->addWidget(summary_);
  layout->addWidget(plot_, 1);
  layout->addWidget(table_, 1);
  layout->addWidget(source_);
  layout->addLayout(make_actions());
  connect(plot_, &PlotView::selection_changed, this, [this](int point) {
    if (point >= 0) select(rows_of_points_.at(static_cast<std::size_t>(point)));
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this] { select(selected_row()); });
  connect(&rent_.work(), &Background::started, this, [this] {
    progress_->setValue(0);
    progress_->show();
  });
  connect(&rent_.work(), &Background::progressed, this,
          [this](double share) { progress_->setValue(static_cast<int>(100 * share)); });
  connect(&rent_.work(), &Background::finished, this, &RentPage::show_result);
  connect(&rent_.work(), &Background::failed, this,
          [this](const QString& why) { show_error(error_, why); });
}

QLayout* RentPage::make_question() {
  models_ = new QLineEdit(this);
  models_->setObjectName(QStringLiteral("rent_models"));
  models_->setAccessibleName(tr("Models, with commas between them"));
  models_->setPlaceholderText(tr("llama-3.1-8b, 7B"));
  tokens_ = new QLineEdit(QStringLiteral("1B"), this);
  tokens_->setObjectName(QStringLiteral("rent_tokens"));
  tokens_->setAccessibleName(tr("Tokens of the whole run"));
  tokens_->setMaximumWidth(90);
  length_ = new QSpinBox(this);
  length_->setRange(1, kLongest);
  length_->setValue(2048);
  length_->setAccessibleName(tr("Sequence length"));
  nodes_ = new QSpinBox(this);
  nodes_->setRange(1, kMostNodes);
  nodes_->setAccessibleName(tr("Machines of each kind"));
  full_ = new QCheckBox(tr("f&ull"), this);
  lora_ = new QCheckBox(tr("&LoRA"), this);
  qlora_ = new QCheckBox(tr("&QLoRA"), this);
  full_->setChecked(true);
  find_ = new QPushButton(tr("&Find machines"), this);
  find_->setObjectName(QStringLiteral("rent_find"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Train"), this));
  bar->addWidget(models_, 1);
  for (QCheckBox* method : {full_, lora_, qlora_}) bar->addWidget(method);
  bar->addWidget(new QLabel(tr("tokens"), this));
  bar->addWidget(tokens_);
  bar->addWidget(new QLabel(tr("in sequences of"), this));
  bar->addWidget(length_);
  bar->addWidget(new QLabel(tr("machines"), this));
  bar->addWidget(nodes_);
  bar->addWidget(find_);
  connect(models_, &QLineEdit::textEdited, this, [this] { is_filled_ = true; });
  connect(models_, &QLineEdit::returnPressed, this, &RentPage::ask);
  connect(tokens_, &QLineEdit::returnPressed, this, &RentPage::ask);
  connect(find_, &QPushButton::clicked, this, &RentPage::ask);
  return bar;
}

QLayout* RentPage::make_actions() {
  use_ = new QPushButton(tr("&Use this machine"), this);
  use_->setObjectName(QStringLiteral("rent_use"));
  use_->setEnabled(false);
  connect(use_, &QPushButton::clicked, this, [this] {
    if (const int row = selected_row(); row >= 0)
      Q_EMIT job_chosen(rent_.rows()[static_cast<std::size_t>(row)].job);
  });
  auto* cancel = new QPushButton(tr("Ca&ncel"), this);
  connect(cancel, &QPushButton::clicked, this, [this] { rent_.cancel(); });
  cancel->setEnabled(false);
  connect(&rent_.work(), &Background::started, cancel, [cancel] { cancel->setEnabled(true); });
  connect(&rent_.work(), &Background::finished, cancel, [cancel] { cancel->setEnabled(false); });
  progress_ = new QProgressBar(this);
  progress_->setAccessibleName(tr("Machines that were looked at"));
  progress_->hide();
  auto* save = new QPushButton(tr("Save the p&lot…"), this);
  connect(save, &QPushButton::clicked, plot_, &PlotView::ask_and_save);
  auto* bar = new QHBoxLayout;
  bar->addWidget(use_);
  bar->addWidget(cancel);
  bar->addWidget(progress_, 1);
  bar->addStretch();
  bar->addWidget(save);
  return bar;
}

void RentPage::take_focus() {
  models_->setFocus();
  models_->selectAll();
}

/// A mistake is told at its field, and what was typed stays.
void RentPage::ask() {
  show_error_at(models_, error_, {});
  show_error_at(tokens_, error_, {});
  RentQuestion question;
  question.sequence_length = length_->value();
  question.nodes = nodes_->value();
  const auto tokens = parse_quantity(tokens_->text().trimmed().toStdString());
  if (!tokens || *tokens <= 0)
    return show_error_at(tokens_, error_, tr("Tokens are a number, such as 500M, 1B or 300B."));
  question.tokens = *tokens;
  for (const QString& name : models_->text().split(QLatin1Char(','), Qt::SkipEmptyParts)) {
    const std::string model = name.trimmed().toStdString();
    try {
      load_model(model, {kTyped, "model", document().directory()}, {});
      question.models.push_back(model);
    } catch (const InputError& e) {
      return show_error_at(models_, error_, Messages::of(e.diagnostic()));
    }
  }
  if (question.models.empty())
    return show_error_at(models_, error_, tr("Name a model, such as llama-3.1-8b or 7B."));
  for (const auto& [box, method] :
       {std::pair{full_, "full"}, std::pair{lora_, "lora"}, std::pair{qlora_, "qlora"}})
    if (box->isChecked()) question.methods.emplace_back(method);
  if (question.methods.empty()) return show_error(error_, tr("Tick a method at least."));
  rent_.start(question);
}

void RentPage::refresh() {
  const auto model = field_of(document().json(), "/model");
  if (!is_filled_ && model && model->is_string()) models_->setText(text(model->get<std::string>()));
  if (rent_.rows().empty() && !rent_.is_running()) show_result();
}

void RentPage::show_result() {
  progress_->hide();
  plot_->set_data(rent_.plot(rows_of_points_));
  summary_->set_text(
      rent_.rows().empty()
          ? tr("Every machine of the catalogue that has a price, each at its largest micro-batch "
               "that surely fits: %1 machines.")
                .arg(rent_.machines(1).size())
          : rent_.summary());
  source_->set_text({});
  use_->setEnabled(false);
  if (!rent_.rows().empty()) select(0);
}

int RentPage::selected_row() const {
  const QModelIndex now = table_->currentIndex();
  if (!now.isValid()) return -1;
  return static_cast<const QSortFilterProxyModel*>(table_->model())->mapToSource(now).row();
}

void RentPage::select(int row) {
  if (row < 0 || row >= static_cast<int>(rent_.rows().size())) return;
  const RentRow& chosen = rent_.rows()[static_cast<std::size_t>(row)];
  use_->setEnabled(!chosen.job.is_null());
  source_->set_text(spoken(chosen.error.isEmpty() ? chosen.hint : chosen.error)
                        .replace(QLatin1Char('\n'), QStringLiteral(" · ")));
  const auto point = std::find(rows_of_points_.begin(), rows_of_points_.end(), row);
  plot_->select(point == rows_of_points_.end() ? -1
                                               : static_cast<int>(point - rows_of_points_.begin()));
  if (selected_row() == row) return;
  const auto* proxy = static_cast<const QSortFilterProxyModel*>(table_->model());
  table_->setCurrentIndex(proxy->mapFromSource(rent_.model()->index(row, 0)));
}

}  // namespace shardplan::gui
