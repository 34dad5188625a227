#include "wizard/main_window.h"

#include <QClipboard>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QProgressBar>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "job/fields.h"
#include "models/core_words.h"
#include "models/dropped_file.h"
#include "models/estimate_models.h"
#include "models/messages.h"
#include "models/provenance.h"
#include "models/recent_files.h"
#include "models/saved_files.h"
#include "models/text.h"
#include "render/describe.h"
#include "views/colours.h"
#include "views/widgets.h"
#include "wizard/accuracy_page.h"
#include "wizard/compare_page.h"
#include "wizard/machine_page.h"
#include "wizard/model_page.h"
#include "wizard/plan_page.h"
#include "wizard/training_page.h"
#include "wizard/verdict_page.h"

namespace shardplan::gui {
namespace {

constexpr int kSteps = 5;  ///< pages of the wizard; those behind them stand on their own

QString first_file(const QMimeData* data) {
  const QList<QUrl> urls = data->urls();
  return urls.size() == 1 && urls.front().isLocalFile() ? urls.front().toLocalFile() : QString();
}

}  // namespace

MainWindow::MainWindow(Session& session, QWidget* parent)
    : QMainWindow(parent), session_(session), stack_(new QStackedWidget(this)) {
  auto* machine = new MachinePage(session, this);
  auto* model = new ModelPage(session, this);
  auto* training = new TrainingPage(session, this);
  auto* plan = new PlanPage(session, this);
  for (Page* page :
       {static_cast<Page*>(machine), static_cast<Page*>(model), static_cast<Page*>(training),
        static_cast<Page*>(new VerdictPage(session, this)), static_cast<Page*>(plan),
        static_cast<Page*>(new ComparePage(session, this)),
        static_cast<Page*>(new AccuracyPage(session, this))})
    add_page(page);
  connect(model, &ModelPage::open_asked, this, [this] { open(tr("a model's config.json")); });
  connect(training, &TrainingPage::open_asked, this, [this] { open(tr("a ds_config.json")); });
  connect(plan, &PlanPage::save_asked, this, &MainWindow::save_as);
  connect(plan, &PlanPage::report_asked, this, &MainWindow::export_report);
  connect(plan, &PlanPage::export_asked, this, &MainWindow::export_files);
  connect(&work_, &Background::failed, this,
          [this](const QString& why) { show_error(message_, why); });

  auto* middle = new QWidget(this);
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(10, 6, 10, 6);
  layout->addWidget(make_steps());
  layout->addWidget(stack_, 1);
  layout->addWidget(make_navigation());
  setCentralWidget(middle);
  make_file_menu();
  make_view_menu();
  setAcceptDrops(true);
  resize(1366, 768);
  connect(&session, &Session::answered, this, &MainWindow::refresh);
  show_page(0);
  refresh();
}

QStringList MainWindow::page_names() {
  return {QStringLiteral("machine"), QStringLiteral("model"), QStringLiteral("training"),
          QStringLiteral("verdict"), QStringLiteral("plan"),  QStringLiteral("compare"),
          QStringLiteral("accuracy")};
}

void MainWindow::add_page(Page* page) {
  const int at = static_cast<int>(pages_.size());
  const bool is_step = at < kSteps;
  pages_.push_back(page);
  stack_->addWidget(page);
  auto* button = new QToolButton(this);
  button->setText(is_step ? QStringLiteral("%1  %2").arg(at + 1).arg(page->title())
                          : page->title());
  button->setObjectName(QStringLiteral("step_") + page_names().value(at));
  button->setCheckable(true);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  button->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(at + 1)));
  connect(button, &QToolButton::clicked, this, [this, at] { show_page(at); });
  connect(page, &Page::done, this, [this] { go(1); });
  steps_.push_back(button);
}

QWidget* MainWindow::make_steps() {
  auto* bar = new QWidget(this);
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QToolButton* step : steps_) layout->addWidget(step);
  layout->addStretch();
  return bar;
}

QWidget* MainWindow::make_navigation() {
  auto* bar = new QWidget(this);
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  summary_ = new TextLabel(TextLabel::Lines::one, this);
  summary_->setObjectName(QStringLiteral("summary"));
  message_ = make_error(this);
  message_->setObjectName(QStringLiteral("message"));
  back_ = new QPushButton(tr("‹ &Back"), this);
  next_ = new QPushButton(tr("&Next ›"), this);
  back_->setObjectName(QStringLiteral("back"));
  next_->setObjectName(QStringLiteral("next"));
  next_->setDefault(true);
  connect(back_, &QPushButton::clicked, this, [this] { go(-1); });
  connect(next_, &QPushButton::clicked, this, [this] { go(1); });
  layout->addWidget(summary_);
  layout->addSpacing(16);
  layout->addWidget(message_, 1);
  layout->addStretch();
  layout->addWidget(make_progress());
  layout->addWidget(back_);
  layout->addWidget(next_);
  return bar;
}

/// Seen while a report is written.
QWidget* MainWindow::make_progress() {
  auto* whole = new QWidget(this);
  auto* progress = new QProgressBar(whole);
  progress->setRange(0, 100);
  progress->setAccessibleName(tr("Writing the report"));
  auto* cancel = new QPushButton(tr("Cancel the report"), whole);
  auto* layout = new QHBoxLayout(whole);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(progress);
  layout->addWidget(cancel);
  whole->hide();
  connect(cancel, &QPushButton::clicked, &work_, &Background::cancel);
  connect(&work_, &Background::started, whole, [whole, progress] {
    progress->setValue(0);
    whole->show();
  });
  connect(&work_, &Background::progressed, progress,
          [progress](double share) { progress->setValue(static_cast<int>(100 * share)); });
  connect(&work_, &Background::finished, whole, &QWidget::hide);
  return whole;
}

void MainWindow::make_file_menu() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->addAction(tr("&New job"), QKeySequence::New, this, [this] {
    if (may_discard()) session_.document().start_new();
  });
  file->addAction(tr("&Open…"), QKeySequence::Open, this,
                  [this] { open(tr("a job or a configuration")); });
  recent_ = file->addMenu(tr("&Recent files"));
  connect(recent_, &QMenu::aboutToShow, this, &MainWindow::fill_recent);
  file->addAction(tr("&Save"), QKeySequence::Save, this, [this] { save(); });
  file->addAction(tr("Save &as…"), QKeySequence::SaveAs, this, [this] { save_as(); });
  file->addSeparator();
  file->addAction(tr("Copy the &command line"), QKeySequence(tr("Ctrl+Shift+C")), this,
                  &MainWindow::copy_command);
  file->addAction(tr("Save a &report…"), this, &MainWindow::export_report);
  file->addAction(tr("Save a &picture of this page…"), this, &MainWindow::export_image);
  file->addSeparator();
  file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
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

void MainWindow::fill_recent() {
  recent_->clear();
  for (const QString& path : recent_files())
    recent_->addAction(QFileInfo(path).fileName(), this, [this, path] { take(path); })
        ->setToolTip(path);
  if (recent_->isEmpty()) recent_->addAction(tr("none"))->setEnabled(false);
}

void MainWindow::show_page(int page) {
  if (page < 0 || page >= stack_->count()) return;
  stack_->setCurrentIndex(page);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    steps_[i]->setChecked(static_cast<int>(i) == page);
  back_->setEnabled(page > 0);
  next_->setEnabled(page + 1 < kSteps);
  pages_[static_cast<std::size_t>(page)]->take_focus();
}

void MainWindow::go(int by) {
  show_page(page() + by);
}

void MainWindow::refresh() {
  const Answer& a = session_.answer();
  show_error(message_, {});
  if (a.estimate) {
    const Fit fit = overall(a.estimate->verdict);
    summary_->set_text(QStringLiteral("%1 %2: %3")
                           .arg(verdict_sign(fit), EstimateModels::headline(a),
                                EstimateModels::resources(a).front().amount));
    set_ink(summary_, verdict_colour(fit, palette()));
    set_hint(summary_, Provenance::device(*a.estimate, a.job->plan));
  } else {
    summary_->set_text({});
  }
  const QString path = session_.document().path();
  setWindowTitle(
      tr("%1[*] – shardplan").arg(path.isEmpty() ? tr("new job") : QFileInfo(path).fileName()));
  setWindowModified(session_.document().is_modified());
}

bool MainWindow::attempt(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const InputError& e) {
    show_error(message_,
               QStringLiteral("%1: %2").arg(QFileInfo(text(e.diagnostic().file)).fileName(),
                                            Messages::of(e.diagnostic())));
    return false;
  }
}

void MainWindow::take(const QString& path) {
  attempt([&] {
    const auto kind = take_file(session_.document(), path, [this] { return may_discard(); });
    if (!kind) return;
    switch (*kind) {
      case FileKind::job:
        remember_file(path);
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("verdict"))));
      case FileKind::model:
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("model"))));
      case FileKind::ds_config:
        return show_page(static_cast<int>(page_names().indexOf(QStringLiteral("training"))));
    }
  });
}

void MainWindow::open(const QString& what) {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open %1").arg(what), {},
                                                    tr("JSON files (*.json);;All files (*)"));
  if (!path.isEmpty()) take(path);
}

bool MainWindow::save() {
  const QString path = session_.document().path();
  return path.isEmpty() ? save_as() : attempt([&] { session_.document().save(path); });
}

bool MainWindow::save_as() {
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save the job"), QStringLiteral("job.json"), tr("JSON files (*.json)"));
  if (path.isEmpty()) return false;
  if (!attempt([&] { session_.document().save(path); })) return false;
  remember_file(path);
  return true;
}

bool MainWindow::may_discard() {
  if (!session_.document().is_modified()) return true;
  const auto answer = QMessageBox::question(
      this, tr("Unsaved job"), tr("The job was changed. Save it?"),
      QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  return answer == QMessageBox::Save ? save() : answer == QMessageBox::Discard;
}

void MainWindow::copy_command() {
  const JobDocument& document = session_.document();
  const bool is_saved = !document.is_modified();
  QGuiApplication::clipboard()->setText(
      text(command_line(document.json(), is_saved ? document.path().toStdString() : "")));
}

void MainWindow::export_image() {
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save a picture"), QStringLiteral("shardplan.png"), tr("Pictures (*.png)"));
  if (!path.isEmpty() && !grab().save(path))
    show_error(message_, tr("%1 cannot be written").arg(path));
}

void MainWindow::export_report() {
  if (!session_.answer().job) return;
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Save a report"), QStringLiteral("report.html"),
      tr("Web pages (*.html);;Markdown (*.md);;JSON files (*.json);;Tables (*.csv)"));
  if (path.isEmpty()) return;
  work_.start([this, path, answer = session_.answer(), job = session_.document().json(),
               workbench = session_.workbench(), code = language().toStdString(),
               version = QCoreApplication::applicationVersion().toStdString()](
                  const Background::Control& control) {
    write_report(answer, job, workbench, path.toStdString(), code, version, control);
    return [this, path] { show_error(message_, tr("Wrote %1").arg(QFileInfo(path).fileName())); };
  });
}

void MainWindow::export_files() {
  if (!session_.answer().job) return;
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Export these files into"));
  if (folder.isEmpty()) return;
  attempt([&] {
    write_plan_files(plan_files(session_.answer(), session_.document().json()),
                     folder.toStdString());
  });
}

void MainWindow::closeEvent(QCloseEvent* event) {
  event->setAccepted(may_discard());
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (!first_file(event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QString path = first_file(event->mimeData());
  event->acceptProposedAction();
  take(path);
}

}  // namespace shardplan::gui
