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
#include "models/session.h"
#include "views/text_label.h"
#include "wizard/page.h"

namespace shardplan::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(Session& session, QWidget* parent = nullptr);

  /// Names of the pages, as --page takes them.
  static QStringList page_names();
  void show_page(int page);
  int page() const { return stack_->currentIndex(); }
  bool is_busy() const { return pages_[static_cast<std::size_t>(page())]->is_busy(); }
  /// Opens a job, or takes a configuration over; tells what is wrong with it.
  void take(const QString& path);

 Q_SIGNALS:
  void language_chosen(const QString& language);
  void theme_chosen(int theme);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void add_page(Page* page);
  QWidget* make_steps();
  QWidget* make_navigation();
  QWidget* make_progress();
  void make_file_menu();
  void make_view_menu();
  void fill_recent();
  void refresh();
  void go(int by);
  bool save();
  bool save_as();
  void open(const QString& what);
  bool may_discard();
  void copy_command();
  void export_image();
  void export_report();
  void export_files();
  /// Runs `action`; what it throws is shown in the line above the buttons.
  bool attempt(const std::function<void()>& action);

  Session& session_;
  std::vector<Page*> pages_;
  std::vector<QToolButton*> steps_;
  QStackedWidget* stack_;
  Background work_;  ///< a report that is being written
  QMenu* recent_;
  TextLabel* summary_;
  QLabel* message_;
  QPushButton *back_, *next_;
};

}  // namespace shardplan::gui
