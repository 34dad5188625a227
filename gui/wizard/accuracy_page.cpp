#include "wizard/accuracy_page.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QSortFilterProxyModel>
#include <QTabWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "models/messages.h"
#include "models/text.h"
#include "views/colours.h"
#include "views/file_dialogs.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr int kColours = 7;

}  // namespace

AccuracyPage::AccuracyPage(Session& session, RecordLibrary& library, QWidget* parent)
    : Page(session, tr("Accuracy"), parent), library_(library) {
  about_ = new TextLabel(TextLabel::Lines::wrapped, this);
  about_->setObjectName(QStringLiteral("accuracy_about"));
  like_ = new TextLabel(TextLabel::Lines::wrapped, this);
  like_->setObjectName(QStringLiteral("accuracy_like"));
  QFont bold = font();
  bold.setBold(true);
  like_->setFont(bold);
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 0);
  progress_->setAccessibleName(tr("Comparing with the records"));
  summaries_ = AccuracyModels::summary_model(this);
  records_ = AccuracyModels::record_model(this);
  plot_ = new PlotView(this);
  plot_->setObjectName(QStringLiteral("records_plot"));
  plot_->setAccessibleName(tr("Predicted against measured"));
  auto* halves = new QHBoxLayout;
  halves->addWidget(plot_, 1);
  halves->addWidget(make_tables(), 1);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(like_);
  layout->addWidget(about_);
  layout->addLayout(make_filter());
  layout->addWidget(progress_);
  layout->addLayout(halves, 1);
  layout->addLayout(make_buttons());
  connect(plot_, &PlotView::selection_changed, this, &AccuracyPage::select);
  connect(&library_, &RecordLibrary::changed, this, [this] {
    is_begun_ = false;
    if (isVisible()) refresh();
  });
  connect(&work_, &Background::finished, progress_, &QWidget::hide);
  connect(&work_, &Background::failed, about_,
          [this](const QString& why) { about_->set_text(why); });
}

QLayout* AccuracyPage::make_filter() {
  figure_ = new QComboBox(this);
  figure_->setObjectName(QStringLiteral("accuracy_figure"));
  figure_->setAccessibleName(tr("What is compared"));
  for (const Figure f :
       {Figure::device, Figure::allocated_peak, Figure::reserved, Figure::step_seconds})
    figure_->addItem(AccuracyModels::figure_name(f), static_cast<int>(f));
  kind_ = new QComboBox(this);
  kind_->setObjectName(QStringLiteral("accuracy_kind"));
  kind_->setAccessibleName(tr("Records of"));
  kind_->addItem(tr("all frameworks"), QString());
  words_ = new QLineEdit(this);
  words_->setObjectName(QStringLiteral("accuracy_words"));
  words_->setPlaceholderText(tr("Filter: a model, a precision, a part of a name"));
  words_->setAccessibleName(tr("Filter the records"));
  add_clear_button(words_);
  only_like_ = new QCheckBox(tr("on&ly those like this job"), this);
  only_like_->setObjectName(QStringLiteral("accuracy_only_like"));
  connect(figure_, &QComboBox::activated, this, &AccuracyPage::show_rows);
  connect(kind_, &QComboBox::activated, this, &AccuracyPage::show_rows);
  connect(words_, &QLineEdit::textChanged, this, &AccuracyPage::show_rows);
  connect(only_like_, &QCheckBox::toggled, this, &AccuracyPage::show_rows);
  auto* bar = new QHBoxLayout;
  bar->addWidget(figure_);
  bar->addWidget(kind_);
  bar->addWidget(words_, 1);
  bar->addWidget(only_like_);
  return bar;
}

QWidget* AccuracyPage::make_tables() {
  auto* tabs = new QTabWidget(this);
  tabs->setAccessibleName(tr("Records and errors"));
  table_ = make_table(records_, tr("Records, worst first"), this, true);
  table_->setObjectName(QStringLiteral("records"));
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    if (const int row = selected_row(); row >= 0) select(row);
    show_buttons();
  });
  tabs->addTab(table_, tr("Records, worst first"));
  tabs->addTab(make_table(summaries_, tr("Errors by framework"), this, true),
               tr("Errors by framework"));
  return tabs;
}

QLayout* AccuracyPage::make_buttons() {
  const auto button = [this](const QString& name, auto action) {
    auto* b = new QPushButton(name, this);
    connect(b, &QPushButton::clicked, this, action);
    return b;
  };
  auto* bar = new QHBoxLayout;
  bar->addWidget(button(tr("&Add records…"), &AccuracyPage::ask_for_records));
  remove_ = button(tr("Re&move this record"), &AccuracyPage::remove_selected);
  open_ = button(tr("&Open its job"), [this] {
    if (const int row = selected_row(); row >= 0) {
      const RecordRow& r = records_->row(row);
      if (const Json job = job_of_record(r.name, r.file); !job.is_null()) Q_EMIT job_chosen(job);
    }
  });
  open_->setObjectName(QStringLiteral("open_record"));
  bar->addWidget(open_);
  bar->addWidget(remove_);
  bar->addStretch();
  auto* save = new QPushButton(tr("Save the p&lot…"), this);
  connect(save, &QPushButton::clicked, plot_, &PlotView::ask_and_save);
  bar->addWidget(save);
  return bar;
}

void AccuracyPage::refresh() {
  if (!is_begun_) compare();
  find_likeness();
  show_buttons();
}

void AccuracyPage::compare() {
  is_begun_ = true;
  about_->set_text(tr("Comparing every record with its prediction…"));
  progress_->show();
  runs_.reset();
  work_.start([this, hardware = workbench().hardware,
               list = library_.all(workbench().hardware)](const Background::Control&) mutable {
    Compared compared;
    compared.accuracy = compare_with_records(list, AccuracyGroup::framework);
    compared.runs = std::make_shared<const MeasuredRuns>(std::move(list));
    return [this, compared = std::move(compared)]() mutable { show_compared(std::move(compared)); };
  });
}

void AccuracyPage::show_compared(Compared compared) {
  const Accuracy& accuracy = compared.accuracy;
  QString said = tr("%1 measured training steps, each against what is predicted for its job. "
                    "Errors are (predicted − measured) ÷ measured.")
                     .arg(accuracy.comparisons.size());
  if (!accuracy.bad.empty())
    said += QLatin1Char(' ') + tr("%1 records cannot be read: %2")
                                   .arg(accuracy.bad.size())
                                   .arg(Messages::of(accuracy.bad.front()));
  about_->set_text(said);
  summaries_->set_rows(AccuracyModels::summaries(accuracy));
  all_ = AccuracyModels::records(accuracy);
  runs_ = std::move(compared.runs);
  const QString kind = kind_->currentData().toString();
  kind_->clear();
  kind_->addItem(tr("all frameworks"), QString());
  for (const QString& name : AccuracyModels::kinds(all_)) kind_->addItem(name, name);
  kind_->setCurrentIndex(std::max(0, kind_->findData(kind)));
  likeness_of_.reset();
  find_likeness();
  show_rows();
}

/// Of the job, once the records are there and whenever the job has changed.
void AccuracyPage::find_likeness() {
  if (!runs_ || likeness_of_ == session().answers()) return;
  likeness_of_ = session().answers();
  likeness_found_.reset();
  const std::optional<Job>& job = answer().job;
  const bool can = job && job->plan.workload.kind == WorkKind::train;
  only_like_->setEnabled(can);
  if (!can) {
    like_->set_text(job ? tr("Records are of training; this job does something else.")
                        : tr("Choose a machine and a model to see how far a job like it was off."));
    return show_rows();
  }
  likeness_.start([this, plan = job->plan, runs = runs_](const Background::Control&) {
    SimilarRecords like = find_similar_records(plan, *runs);
    return [this, plan, like = std::move(like)] {
      like_->set_text(AccuracyModels::like_this(like, plan));
      likeness_found_ = like;
      show_rows();
    };
  });
}

void AccuracyPage::show_rows() {
  RecordFilter filter;
  filter.figure = static_cast<Figure>(figure_->currentData().toInt());
  filter.kind = kind_->currentData().toString();
  filter.words = words_->text();
  if (only_like_->isChecked() && likeness_found_ && runs_) {
    filter.names.emplace();
    for (const std::size_t run : likeness_found_->runs)
      filter.names->insert(runs_->records()[run].name);
  }
  std::vector<RecordRow> rows = AccuracyModels::filtered(all_, filter);
  std::vector<QColor> colours;
  for (int i = 0; i < kColours; ++i) colours.push_back(series_colour(i));
  plot_->set_data(AccuracyModels::plot(rows, AccuracyModels::kinds(all_), colours));
  records_->set_rows(std::move(rows));
  table_->clearSelection();
  table_->setCurrentIndex({});
  show_buttons();
}

int AccuracyPage::selected_row() const {
  const QModelIndex now = table_->currentIndex();
  if (!now.isValid()) return -1;
  return static_cast<const QSortFilterProxyModel*>(table_->model())->mapToSource(now).row();
}

void AccuracyPage::select(int row) {
  if (row < 0) return;
  plot_->select(row);
  if (selected_row() == row) return;
  const auto* proxy = static_cast<const QSortFilterProxyModel*>(table_->model());
  table_->setCurrentIndex(proxy->mapFromSource(records_->index(row, 0)));
}

void AccuracyPage::show_buttons() {
  const int row = selected_row();
  const bool chosen = row >= 0 && row < records_->rowCount();
  open_->setEnabled(chosen);
  remove_->setEnabled(chosen && library_.owns(text(records_->row(row).file)));
}

void AccuracyPage::ask_for_records() {
  const QStringList paths = FileDialogs::which_to_open(this, tr("Add measurement records"));
  if (!paths.isEmpty()) add_records(paths);
}

void AccuracyPage::add_records(const QStringList& paths) {
  const RecordLibrary::Added added = library_.add(paths, workbench().hardware);
  if (!added.bad.empty())
    Q_EMIT told_problem(QStringLiteral("%1: %2").arg(
        QFileInfo(text(added.bad.front().file)).fileName(), Messages::of(added.bad.front())));
  else
    Q_EMIT told(tr("Records added: %1").arg(added.records));
}

void AccuracyPage::remove_selected() {
  const int row = selected_row();
  if (row < 0) return;
  const QString file = text(records_->row(row).file);
  if (library_.remove(file))
    Q_EMIT told(tr("Removed %1").arg(QFileInfo(file).fileName()));
  else
    Q_EMIT told_problem(tr("%1 cannot be removed").arg(file));
}

}  // namespace shardplan::gui
