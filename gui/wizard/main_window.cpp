#include "wizard/main_window.h"

#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenuBar>
#include <QScreen>
#include <QVBoxLayout>

#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "models/verdict_words.h"
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

/// What the highest page needs. A page that was never seen asks for more: it does not know its
/// width.
constexpr int kLowestPage = 560;

/// All of a small screen that the desktop leaves to windows, their frames included.
QSize first_size(const QScreen& screen) {
  constexpr int kFrame = 40;  // a title bar, which is known only when the window is seen
  return QSize(1366, 768).boundedTo(screen.availableSize() - QSize(0, kFrame));
}

}  // namespace

MainWindow::MainWindow(Session& session, QWidget* parent)
    : QMainWindow(parent), session_(session), stack_(new QStackedWidget(this)) {
  auto* machine = new MachinePage(session, this);
  auto* model = new ModelPage(session, this);
  auto* training = new TrainingPage(session, this);
  plan_ = new PlanPage(session, this);
  compare_ = new ComparePage(session, this);
  for (Page* page :
       {static_cast<Page*>(machine), static_cast<Page*>(model), static_cast<Page*>(training),
        static_cast<Page*>(new VerdictPage(session, this)), static_cast<Page*>(plan_),
        static_cast<Page*>(compare_), static_cast<Page*>(new AccuracyPage(session, this))})
    add_page(page);
  connect(model, &ModelPage::open_asked, this, [this] { open(tr("a model's config.json")); });
  connect(training, &TrainingPage::open_asked, this, [this] { open(tr("a ds_config.json")); });
  connect(plan_, &PlanPage::copy_asked, this, &MainWindow::copy_command);
  connect(plan_, &PlanPage::save_asked, this, &MainWindow::save_as);
  connect(plan_, &PlanPage::report_asked, this, &MainWindow::export_report);
  connect(plan_, &PlanPage::export_asked, this, &MainWindow::export_files);
  connect(&work_, &Background::failed, this, &MainWindow::tell_problem);
  notices_ = new NoticeBar(this);
  connect(notices_, &NoticeBar::undo_asked, this,
          [this] { session_.document().undo_stack().undo(); });

  stack_->setMinimumHeight(kLowestPage);
  auto* middle = new QWidget(this);
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(10, 6, 10, 6);
  layout->addWidget(make_steps());
  layout->addWidget(stack_, 1);
  layout->addWidget(notices_);
  layout->addWidget(make_navigation());
  setCentralWidget(middle);
  make_file_menu();
  make_edit_menu();
  make_view_menu();
  setAcceptDrops(true);
  resize(first_size(*screen()));
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

/// A field that has words of its own, which the job has not yet, undoes those; everywhere else undo
/// and redo are the job's.
void MainWindow::make_edit_menu() {
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  QUndoStack& steps = session_.document().undo_stack();
  QAction* undo = steps.createUndoAction(this, tr("Undo"));
  undo->setShortcuts(QKeySequence::Undo);
  undo->setObjectName(QStringLiteral("undo"));
  QAction* redo = steps.createRedoAction(this, tr("Redo"));
  redo->setShortcuts(QKeySequence::Redo);
  redo->setObjectName(QStringLiteral("redo"));
  edit->addActions({undo, redo});
  QCoreApplication::instance()->installEventFilter(this);
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
