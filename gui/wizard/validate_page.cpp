#include "wizard/validate_page.h"

#include <QClipboard>
#include <QDir>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "load/job.h"
#include "models/engine_job.h"
#include "models/messages.h"
#include "models/text.h"
#include "save/file.h"
#include "views/colours.h"
#include "views/file_dialogs.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr int kSteps = 30;
/// Beyond it a CPU needs minutes for a step.
constexpr std::int64_t kManyParameters = 50'000'000;
constexpr const char* kJobFile = "native-job.json";

}  // namespace

ValidatePage::ValidatePage(Session& session, RecordLibrary& library, QWidget* parent)
    : Page(session, tr("Validate"), parent), library_(library) {
  note_ = new TextLabel(TextLabel::Lines::wrapped, this);
  note_->setObjectName(QStringLiteral("validate_note"));
  error_ = make_error(this);
  error_->setObjectName(QStringLiteral("validate_error"));
  state_ = new TextLabel(TextLabel::Lines::one, this);
  state_->setObjectName(QStringLiteral("validate_state"));
  rows_ = RunModels::model(this);
  auto* results = new QVBoxLayout;
  results->addWidget(make_table(rows_, tr("Measured beside predicted"), this), 1);
  results->addLayout(make_after());
  auto* halves = new QHBoxLayout;
  halves->addLayout(make_plots(), 5);
  halves->addWidget(make_box(tr("Measured beside predicted"), results, this), 4);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(make_question());
  layout->addWidget(note_);
  layout->addWidget(error_);
  layout->addWidget(state_);
  layout->addLayout(halves, 1);
  layout->addWidget(make_cluster());
  connect(&run_, &ValidatorRun::started, this, &ValidatePage::show_run);
  connect(&run_, &ValidatorRun::stepped, this, &ValidatePage::show_run);
  connect(&run_, &ValidatorRun::finished, this, &ValidatePage::show_run);
}

QLayout* ValidatePage::make_question() {
  subject_ = new QComboBox(this);
  subject_->setObjectName(QStringLiteral("validate_subject"));
  subject_->setAccessibleName(tr("What is run"));
  subject_->addItem(tr("this job"), static_cast<int>(Subject::job));
  subject_->addItem(tr("a small example"), static_cast<int>(Subject::example));
  device_ = new QComboBox(this);
  device_->setAccessibleName(tr("What it runs on"));
  device_->addItem(tr("this machine's CPU"), static_cast<int>(EngineDevice::host));
  device_->addItem(tr("this machine's GPUs"), static_cast<int>(EngineDevice::gpus));
  steps_ = new QSpinBox(this);
  steps_->setRange(1, 1'000'000);
  steps_->setValue(kSteps);
  steps_->setSuffix(tr(" steps"));
  steps_->setAccessibleName(tr("Steps"));
  start_ = new QPushButton(tr("&Run it"), this);
  start_->setObjectName(QStringLiteral("validate_start"));
  stop_ = new QPushButton(tr("S&top"), this);
  stop_->setObjectName(QStringLiteral("validate_stop"));
  progress_ = new QProgressBar(this);
  progress_->setAccessibleName(tr("Steps that were run"));
  for (QComboBox* box : {subject_, device_})
    connect(box, &QComboBox::activated, this, &ValidatePage::refresh);
  connect(start_, &QPushButton::clicked, this, &ValidatePage::start);
  connect(stop_, &QPushButton::clicked, &run_, &ValidatorRun::stop);
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Run"), this));
  bar->addWidget(subject_);
  bar->addWidget(new QLabel(tr("on"), this));
  bar->addWidget(device_);
  bar->addWidget(steps_);
  bar->addWidget(start_);
  bar->addWidget(stop_);
  bar->addWidget(progress_, 1);
  return bar;
}

QLayout* ValidatePage::make_plots() {
  loss_ = new PlotView(this);
  loss_->setAccessibleName(tr("Loss by step"));
  loss_->setObjectName(QStringLiteral("loss"));
  memory_ = new PlotView(this);
  memory_->setAccessibleName(tr("Memory by step"));
  memory_->setObjectName(QStringLiteral("memory_by_step"));
  auto* plots = new QVBoxLayout;
  plots->addWidget(loss_, 1);
  plots->addWidget(memory_, 1);
  return plots;
}

QLayout* ValidatePage::make_after() {
  save_record_ = new QPushButton(tr("Save the re&cord…"), this);
  keep_record_ = new QPushButton(tr("&Keep it with the records"), this);
  keep_record_->setObjectName(QStringLiteral("keep_record"));
  keep_record_->setToolTip(tr("Adds the run to the records that the Accuracy page shows."));
  connect(save_record_, &QPushButton::clicked, this, &ValidatePage::save_record);
  connect(keep_record_, &QPushButton::clicked, this, &ValidatePage::keep_record);
  auto* bar = new QHBoxLayout;
  bar->addWidget(save_record_);
  bar->addWidget(keep_record_);
  bar->addStretch();
  return bar;
}

QWidget* ValidatePage::make_cluster() {
  command_ = make_text(this);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->setObjectName(QStringLiteral("validate_command"));
  copy_ = new QPushButton(tr("Cop&y"), this);
  copy_->setObjectName(QStringLiteral("validate_copy"));
  save_job_ = new QPushButton(tr("Save the &job for it…"), this);
  connect(copy_, &QPushButton::clicked, this, [this] {
    QGuiApplication::clipboard()->setText(command_->text());
    Q_EMIT told(tr("Copied: %1").arg(command_->text()));
  });
  connect(save_job_, &QPushButton::clicked, this, &ValidatePage::save_job);
  auto* bar = new QHBoxLayout;
  bar->addWidget(command_, 1);
  bar->addWidget(copy_);
  bar->addWidget(save_job_);
  QWidget* box = make_box(tr("On the machine that the job is for"), bar, this);
  box->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  return box;
}

ValidatePage::Subject ValidatePage::subject() const {
  return static_cast<Subject>(subject_->currentData().toInt());
}

Json ValidatePage::wanted() const {
  if (subject() == Subject::example) return example_engine_job();
  if (!answer().job) return {};
  return engine_job(document().json(), *answer().job, document().directory(),
                    static_cast<EngineDevice>(device_->currentData().toInt()));
}

void ValidatePage::start() {
  const Json job = wanted();
  if (job.is_null()) return;
  const QString file = QFileInfo(document().path()).completeBaseName();
  const QString name = subject() == Subject::example ? QStringLiteral("example")
                       : file.isEmpty()              ? QStringLiteral("run")
                                                     : file;
  const std::string storage = QDir::tempPath().toStdString();  // the file there has no name
  run_.start({with_storage_here(job, storage), name, steps_->value()});
}

void ValidatePage::show_example() {
  subject_->setCurrentIndex(subject_->findData(static_cast<int>(Subject::example)));
  refresh();
  if (start_->isEnabled()) start();
}

QString ValidatePage::remark() const {
  if (ValidatorRun::program().isEmpty())
    return tr("shardplan-validate was not found beside this program or on the PATH.");
  if (subject() == Subject::example)
    return tr(
        "A GPT of 170,000 parameters on the built-in text, divided by ZeRO-2 among four "
        "ranks of this machine's CPU: a few seconds.");
  if (!answer().job) return tr("Choose a machine and a model first, or run the small example.");
  const Job& job = *answer().job;
  if (job.plan.workload.kind != WorkKind::train)
    return tr("Only training is run for real; this job does something else.");
  QStringList remarks;
  if (!runs_on_engine(job))
    remarks.push_back(
        tr("shardplan's own engine runs the same model, batch and ZeRO stage; its memory is "
           "predicted by rules of its own."));
  const bool on_cpu =
      static_cast<EngineDevice>(device_->currentData().toInt()) == EngineDevice::host;
  if (on_cpu && job.model.parameter_count() > kManyParameters)
    remarks.push_back(
        tr("A CPU takes minutes or hours for a step of a model of this size: the small example "
           "shows the same in seconds."));
  return remarks.join(QLatin1Char(' '));
}

void ValidatePage::refresh() {
  const bool can =
      !wanted().is_null() && !ValidatorRun::program().isEmpty() &&
      (subject() == Subject::example || answer().job->plan.workload.kind == WorkKind::train);
  device_->setEnabled(subject() == Subject::job);
  start_->setEnabled(can);
  note_->set_text(remark());
  command_->setText(
      answer().job
          ? cluster_command(*answer().job, QLatin1String(kJobFile))
          : QStringLiteral("shardplan-validate %1 --record run.json").arg(QLatin1String(kJobFile)));
  const bool has_job = answer().job && answer().job->plan.workload.kind == WorkKind::train;
  save_job_->setEnabled(has_job);
  copy_->setEnabled(has_job);
  show_run();
}

void ValidatePage::show_run() {
  const RunColours colours{series_colour(0), series_colour(1)};
  loss_->set_data(RunModels::loss(run_, colours));
  memory_->set_data(RunModels::memory(run_, colours));
  rows_->set_rows(RunModels::rows(run_));
  show_state();
}

void ValidatePage::show_state() {
  stop_->setEnabled(run_.is_running());
  const bool has_record = !run_.record().is_null();
  save_record_->setEnabled(has_record);
  keep_record_->setEnabled(has_record);
  progress_->setVisible(run_.is_running() || !run_.steps().empty());
  progress_->setRange(0, run_.facts() ? static_cast<int>(run_.facts()->steps) : 0);
  progress_->setValue(static_cast<int>(run_.steps().size()));
  show_error(error_,
             run_.failure().isEmpty() ? QString() : tr("The run ended: %1").arg(run_.failure()));
  QString state = RunModels::state(run_);
  if (run_.facts() && !state.isEmpty())
    state = QStringLiteral("%1 · %2").arg(RunModels::subject(*run_.facts()), state);
  if (run_.was_stopped() && !run_.is_running()) state += QStringLiteral(" · ") + tr("stopped");
  state_->set_text(state);
}

void ValidatePage::save_job() {
  if (!answer().job) return;
  const QString path = FileDialogs::where_to_save(this, tr("Save the job"), QLatin1String(kJobFile),
                                                  {{tr("JSON files"), QStringLiteral("json")}});
  if (path.isEmpty()) return;
  try {
    write_file(path.toStdString(), engine_job(document().json(), *answer().job,
                                              document().directory(), EngineDevice::gpus)
                                           .dump(2) +
                                       "\n");
    Q_EMIT told(tr("Saved %1").arg(QFileInfo(path).fileName()));
  } catch (const InputError& e) {
    Q_EMIT told_problem(Messages::of(e.diagnostic()));
  }
}

void ValidatePage::save_record() {
  const QString path =
      FileDialogs::where_to_save(this, tr("Save the record"), QStringLiteral("record.json"),
                                 {{tr("JSON files"), QStringLiteral("json")}});
  if (path.isEmpty()) return;
  try {
    write_file(path.toStdString(), run_.record().dump(1) + "\n");
    Q_EMIT told(tr("Saved %1").arg(QFileInfo(path).fileName()));
  } catch (const InputError& e) {
    Q_EMIT told_problem(Messages::of(e.diagnostic()));
  }
}

void ValidatePage::keep_record() {
  try {
    library_.keep(run_.record());
    keep_record_->setEnabled(false);
    Q_EMIT told(tr("Kept with the records: see Accuracy"));
  } catch (const InputError& e) {
    Q_EMIT told_problem(Messages::of(e.diagnostic()));
  }
}

}  // namespace shardplan::gui
