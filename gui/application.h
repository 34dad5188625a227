// The application around the windows: language, colours, and pictures without a display.
#pragma once

#include <QApplication>
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
  /// "en", "ja" or "ko"; the window is made anew in that language, on the same page.
  void set_language(const QString& language);
  void set_theme(Theme theme);
  /// Writes what the window looks like; false when the file cannot be written.
  bool save_picture(const QString& path, const QSize& size, double scale);

 private:
  void make_window();

  QApplication& qt_;
  QPalette system_palette_;
  QFont system_font_;
  WordTranslator own_words_;
  QTranslator qt_words_;
  Session session_;
  std::unique_ptr<MainWindow> window_;
};

}  // namespace shardplan::gui
