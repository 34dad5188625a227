#include "wizard/main_window.h"

#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScreen>
#include <QVBoxLayout>
#include <utility>

#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
#include "render/describe.h"
#include "views/colours.h"
#include "views/plot_view.h"
#include "views/report_style.h"
#include "views/widgets.h"
#include "wizard/accuracy_page.h"
#include "wizard/compare_page.h"
#include "wizard/machine_page.h"
#include "wizard/model_page.h"
#include "wizard/plan_page.h"
#include "wizard/rent_page.h"
#include "wizard/start_page.h"
#include "wizard/training_page.h"
#include "wizard/validate_page.h"
#include "wizard/verdict_page.h"

namespace shardplan::gui {
namespace {

constexpr int kSteps = 5;  ///< pages of the wizard after the first; those behind stand on their own

/// What the highest page needs. A page that was never seen asks for more: it does not know its
/// width.
constexpr int kLowestPage = 560;
/// In a window narrower than this its sentences take more lines.
constexpr int kWide = 1366, kLowestNarrowPage = 740;

/// All of a small screen that the desktop leaves to windows, their frames included.
QSize first_size(const QScreen& screen) {
  constexpr int kFrame = 40;  // a title bar, which is known only when the window is seen
  return QSize(1366, 768).boundedTo(screen.availableSize() - QSize(0, kFrame));
}

}  // namespace

MainWindow::MainWindow(Session& session, QWidget* parent)
    : QMainWindow(parent), session_(session), stack_(new QStackedWidget(this)) {
  auto* start = new StartPage(session, this);
  auto* rent = new RentPage(session, this);
  auto* machine = new MachinePage(session, this);
  auto* model = new ModelPage(session, this);
  auto* training = new TrainingPage(session, this);
  plan_ = new PlanPage(session, this);
  compare_ = new ComparePage(session, this);
  accuracy_ = new AccuracyPage(session, library_, this);
  for (Page* page :
       {static_cast<Page*>(start), static_cast<Page*>(machine), static_cast<Page*>(model),
        static_cast<Page*>(training), static_cast<Page*>(new VerdictPage(session, this)),
        static_cast<Page*>(plan_), static_cast<Page*>(compare_), static_cast<Page*>(accuracy_),
        static_cast<Page*>(new ValidatePage(session, library_, this)), static_cast<Page*>(rent)})
    add_page(page);
  connect(start, &StartPage::job_chosen, this, &MainWindow::begin_with);
  connect(start, &StartPage::file_chosen, this, &MainWindow::take);
  connect(start, &StartPage::open_asked, this, [this] { open(tr("a job or a configuration")); });
  connect(start, &StartPage::page_asked, this,
          [this](const QString& name) { show_page(static_cast<int>(page_names().indexOf(name))); });
  connect(rent, &RentPage::job_chosen, this, &MainWindow::begin_with);
  connect(model, &ModelPage::open_asked, this, [this] { open(tr("a model's config.json")); });
  connect(training, &TrainingPage::open_asked, this, [this] { open(tr("a ds_config.json")); });
  connect(accuracy_, &AccuracyPage::job_chosen, this, &MainWindow::begin_with);
  connect(plan_, &PlanPage::copy_asked, this, &MainWindow::copy_command);
  connect(plan_, &PlanPage::save_asked, this, &MainWindow::save_as);
  connect(plan_, &PlanPage::report_asked, this, &MainWindow::export_report);
  connect(plan_, &PlanPage::export_asked, this, &MainWindow::export_files);
  connect(&work_, &Background::failed, this, &MainWindow::tell_problem);
  notices_ = new NoticeBar(this);
  connect(notices_, &NoticeBar::undo_asked, this,
          [this] { session_.document().undo_stack().undo(); });

  auto* middle = new QWidget(this);
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(space(), space(), space(), space());
  layout->addWidget(make_steps());
  layout->addWidget(make_scroll(stack_, this), 1);
  layout->addWidget(notices_);
  layout->addWidget(make_navigation());
  setCentralWidget(middle);
  make_file_menu();
  make_edit_menu();
  make_view_menu();
  make_help_menu();
  for (const auto* plot : findChildren<PlotView*>()) {
    connect(plot, &PlotView::saved, this, [this](const QString& path) {
      tell_done(tr("Wrote %1").arg(QFileInfo(path).fileName()));
    });
    connect(plot, &PlotView::not_saved, this,
            [this](const QString& path) { tell_problem(tr("%1 cannot be written").arg(path)); });
  }
  setAcceptDrops(true);
  resize(first_size(*screen()));
  connect(&session, &Session::answered, this, &MainWindow::refresh);
  show_page(0);
  refresh();
}

QStringList MainWindow::page_names() {
  return {QStringLiteral("start"),    QStringLiteral("machine"),  QStringLiteral("model"),
          QStringLiteral("training"), QStringLiteral("verdict"),  QStringLiteral("plan"),
          QStringLiteral("compare"),  QStringLiteral("accuracy"), QStringLiteral("validate"),
          QStringLiteral("rent")};
}

void MainWindow::add_page(Page* page) {
  const int at = static_cast<int>(pages_.size());
  const bool is_step = at > 0 && at <= kSteps;
  pages_.push_back(page);
  stack_->addWidget(page);
  auto* button = new QToolButton(this);
  button->setText(is_step ? QStringLiteral("%1  %2").arg(at).arg(page->title()) : page->title());
  button->setObjectName(QStringLiteral("step_") + page_names().value(at));
  button->setCheckable(true);
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::TabFocus);
  button->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(at)));
  connect(button, &QToolButton::clicked, this, [this, at] { show_page(at); });
  connect(page, &Page::done, this, [this] { go(1); });
  connect(page, &Page::told, this, &MainWindow::tell_done);
  connect(page, &Page::told_problem, this, &MainWindow::tell_problem);
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
  back_ = new QPushButton(tr("‹ &Back"), this);
  next_ = new QPushButton(tr("&Next ›"), this);
  back_->setObjectName(QStringLiteral("back"));
  next_->setObjectName(QStringLiteral("next"));
  next_->setDefault(true);
  connect(back_, &QPushButton::clicked, this, [this] { go(-1); });
  connect(next_, &QPushButton::clicked, this, [this] { go(1); });
  layout->addWidget(summary_);
  layout->addStretch();
  layout->addWidget(make_progress());
  layout->addWidget(back_);
  layout->addWidget(next_);
  return bar;
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  auto* widget = qobject_cast<QWidget*>(watched);
  if (event->type() != QEvent::ShortcutOverride || widget == nullptr || widget->window() != this)
    return QMainWindow::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  if (!key->matches(QKeySequence::Undo) && !key->matches(QKeySequence::Redo)) return false;
  auto* line = qobject_cast<QLineEdit*>(widget);
  if (line == nullptr) line = widget->findChild<QLineEdit*>();  // of a spin box
  if (line != nullptr && line->hasFocus() && line->isModified()) return false;
  event->ignore();
  return true;
}

void MainWindow::show_page(int page) {
  if (page < 0 || page >= stack_->count()) return;
  stack_->setCurrentIndex(page);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    steps_[i]->setChecked(static_cast<int>(i) == page);
  back_->setEnabled(page > 0);
  next_->setEnabled(page < kSteps);
  pages_[static_cast<std::size_t>(page)]->take_focus();
}

void MainWindow::go(int by) {
  if (by > 0 && !waits_for_machine_.isEmpty() && session_.answer().the_cluster() != nullptr)
    return take(std::exchange(waits_for_machine_, {}));
  show_page(page() + by);
}

void MainWindow::refresh() {
  notices_->show_notice({});
  show_summary();
  const QString path = session_.document().path();
  setWindowTitle(
      tr("%1[*] – shardplan").arg(path.isEmpty() ? tr("new job") : QFileInfo(path).fileName()));
  setWindowModified(session_.document().is_modified());
}

void MainWindow::show_summary() {
  const Answer& a = session_.answer();
  if (a.estimate) {
    const Fit fit = overall(a.estimate->verdict);
    summary_->set_text(QStringLiteral("%1 %2: %3")
                           .arg(verdict_sign(fit), VerdictWords::brief(a.estimate->verdict),
                                VerdictWords::need(*a.estimate)));
    set_ink(summary_, verdict_colour(fit, palette()));
    set_hint(summary_, Provenance::device(*a.estimate, a.job->plan));
  } else {
    summary_->set_text({});
  }
}

/// Pages that have no room scroll; the buttons below them stay in sight.
void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  stack_->setMinimumHeight(width() < kWide ? kLowestNarrowPage : kLowestPage);
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && summary_ != nullptr) show_summary();
}

WindowState MainWindow::state() const {
  return {saveGeometry(), page(), plan_->search().outcome(), compare_->kept()};
}

void MainWindow::resume(const WindowState& state) {
  restoreGeometry(state.geometry);
  plan_->search().resume(state.search);
  compare_->keep(state.kept);
  show_page(state.page);
}

SearchSession& MainWindow::search() {
  return plan_->search();
}

}  // namespace shardplan::gui
