// The window: pages along the top, steps along the bottom, files and language in the menus.
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QPushButton>
#include <QStackedWidget>
#include <QToolButton>
#include <functional>
#include <vector>

#include "models/background.h"
#include "models/record_library.h"
#include "models/search_session.h"
#include "models/session.h"
#include "views/notice_bar.h"
#include "views/text_label.h"
#include "wizard/compare_page.h"
#include "wizard/page.h"

namespace shardplan::gui {

class AccuracyPage;
class PlanPage;

/// What a window takes over from the one whose place it takes, when the language changes.
struct WindowState {
  QByteArray geometry;
  int page = 0;
  std::optional<SearchOutcome> search;
  std::vector<KeptPlan> kept;
};

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(Session& session, QWidget* parent = nullptr);

  /// Names of the pages, as --page takes them.
  static QStringList page_names();
  void show_page(int page);
  int page() const { return stack_->currentIndex(); }
  bool is_busy() const { return pages_[static_cast<std::size_t>(page())]->is_busy(); }
  void show_example() { pages_[static_cast<std::size_t>(page())]->show_example(); }
  /// Opens a job, or takes a configuration over; tells what changed by it, or what is wrong with
  /// it.
  void take(const QString& path);
  /// Of a trainer's file that leaves open which GPUs it runs on: it is taken when one is chosen.
  void ask_for_machine(const QString& path);
  WindowState state() const;
  void resume(const WindowState& state);
  /// Of the plan page.
  SearchSession& search();

 Q_SIGNALS:
  void language_chosen(const QString& language);
  void theme_chosen(int theme);
  void closed();  ///< and nothing is left to be saved

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void add_page(Page* page);
  QWidget* make_steps();
  QWidget* make_navigation();
  QWidget* make_progress();
  void make_file_menu();
  void make_edit_menu();
  void make_view_menu();
  void make_help_menu();
  void show_documentation();
  void fill_recent();
  void refresh();
  void show_summary();
  void go(int by);
  bool save();
  bool save_as();
  bool save_to(const QString& path);
  void open(const QString& what);
  bool may_discard();
  /// Another job in the place of this one, without a file.
  void begin_with(const Json& job);
  void copy_command();
  void export_image();
  void export_report();
  void export_files();
  /// Asks about files that `folder` has already.
  bool may_overwrite(const QStringList& names, const QString& folder);
  /// Runs `action`; what it throws is shown in the line above the buttons.
  bool attempt(const std::function<void()>& action);
  void tell_done(const QString& what);
  void tell_problem(const QString& what);

  Session& session_;
  std::vector<Page*> pages_;
  RecordLibrary library_;
  PlanPage* plan_;
  AccuracyPage* accuracy_;
  ComparePage* compare_;
  std::vector<QToolButton*> steps_;
  QStackedWidget* stack_;
  Background work_;  ///< a report that is being written
  QMenu* recent_;
  TextLabel* summary_ = nullptr;
  NoticeBar* notices_;
  QPushButton *back_, *next_;
  QString waits_for_machine_;  ///< a trainer's file that leaves open which GPUs; "": none
};

}  // namespace shardplan::gui
