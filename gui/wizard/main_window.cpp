#include "wizard/main_window.h"

#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QVBoxLayout>

#include "models/core_words.h"
#include "models/estimate_models.h"
#include "models/provenance.h"
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

}  // namespace shardplan::gui
