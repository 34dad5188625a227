// The application around the windows: language, colours, what is remembered from one run to the
// next, and pictures without a display.
#pragma once

#include <QApplication>
#include <QTimer>
#include <QTranslator>
#include <memory>

#include "models/session.h"
#include "models/word_translator.h"
#include "views/colours.h"
#include "wizard/main_window.h"

namespace shardplan::gui {

class Application {
 public:
  explicit Application(QApplication& qt);
  ~Application();

  Session& session() { return session_; }
  MainWindow& window() { return *window_; }
  /// "en", "ja" or "ko"; the window is made anew in that language, and shows what it showed.
  void set_language(const QString& language);
  void set_theme(Theme theme);
  /// Language, colours, window, job and search as they were left; from now on they are remembered.
  void resume();
  /// Writes what the window looks like; false when the file cannot be written.
  bool save_picture(const QString& path, const QSize& size, double scale);

 private:
  void make_window();
  void remember_window();
  void search_again();

  QApplication& qt_;
  QPalette system_palette_;
  QFont system_font_;
  WordTranslator own_words_;
  QTranslator qt_words_;
  Session session_;
  QTimer keep_soon_;  ///< the job, once nothing has changed for a moment
  bool is_remembering_ = false;
  std::unique_ptr<MainWindow> window_;
};

}  // namespace shardplan::gui
