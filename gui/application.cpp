#include "application.h"

#include <QImage>
#include <QLibraryInfo>
#include <QLocale>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/preferences.h"
#include "views/accessible.h"
#include "views/window_style.h"

namespace shardplan::gui {

namespace {

/// The system's font; where it has no letters of the language, one that has them in the shapes that
/// its readers know (Japanese and Korean share code points with Chinese).
QFont font_for(const QString& language, QFont font) {
  const QString region = language == QStringLiteral("ja")   ? QStringLiteral("JP")
                         : language == QStringLiteral("ko") ? QStringLiteral("KR")
                                                            : QString();
  if (!region.isEmpty())
    font.setFamilies({font.family(), QStringLiteral("Noto Sans CJK ") + region,
                      QStringLiteral("Noto Sans ") + region});
  return font;
}

}  // namespace

Application::Application(QApplication& qt)
    : qt_(qt), system_palette_(qt.palette()), system_font_(QApplication::font()) {
  make_views_accessible();
  QApplication::setStyle(new WindowStyle);
  system_palette_ = QApplication::palette();
  constexpr int kMoment = 500;  // milliseconds
  keep_soon_.setSingleShot(true);
  keep_soon_.setInterval(kMoment);
  QObject::connect(&keep_soon_, &QTimer::timeout, &session_,
                   [this] { keep_draft(session_.document()); });
  set_language(QLocale::system().name().left(2));
}

Application::~Application() {
  QApplication::setFont(system_font_);
}

void Application::make_window() {
  const bool was_visible = window_ && window_->isVisible();
  std::optional<WindowState> state;
  if (window_) state = window_->state();
  window_ = std::make_unique<MainWindow>(session_);
  if (state) window_->resume(*state);
  // The window that asked is gone when these are done: not before the event ends.
  QObject::connect(
      window_.get(), &MainWindow::language_chosen, &qt_,
      [this](const QString& language) {
        set_language(language);
        if (is_remembering_) set_preference(Preference::language, language);
      },
      Qt::QueuedConnection);
  QObject::connect(window_.get(), &MainWindow::theme_chosen, &qt_, [this](int theme) {
    set_theme(static_cast<Theme>(theme));
    if (is_remembering_) set_preference(Preference::theme, theme);
  });
  QObject::connect(window_.get(), &MainWindow::closed, &qt_, [this] { remember_window(); });
  if (was_visible) window_->show();
}

void Application::resume() {
  const QVariant language = preference(Preference::language), theme = preference(Preference::theme);
  if (language.isValid()) set_language(language.toString());
  if (theme.isValid()) set_theme(static_cast<Theme>(theme.toInt()));
  if (resume_draft(session_.document())) search_again();
  window_->restoreGeometry(preference(Preference::geometry).toByteArray());
  window_->show_page(
      static_cast<int>(MainWindow::page_names().indexOf(preference(Preference::page).toString())));
  is_remembering_ = true;
  QObject::connect(&session_, &Session::answered, &keep_soon_, qOverload<>(&QTimer::start));
}

/// The search is over in a moment, and finds the same again.
void Application::search_again() {
  const QString searched = preference(Preference::searched_job).toString();
  if (searched.isEmpty()) return;
  try {
    window_->search().start_again(
        parse_json(searched.toStdString(), "draft"),
        static_cast<Objective>(preference(Preference::objective).toInt()));
  } catch (const InputError&) {  // written by nobody that is known
    set_preference(Preference::searched_job, {});
  }
}

void Application::remember_window() {
  if (!is_remembering_) return;
  keep_draft(session_.document());
  set_preference(Preference::geometry, window_->saveGeometry());
  set_preference(Preference::page, MainWindow::page_names().value(window_->page()));
}

void Application::set_language(const QString& language) {
  QLocale::setDefault(QLocale(language));
  QCoreApplication::removeTranslator(&own_words_);
  QCoreApplication::removeTranslator(&qt_words_);
  if (qt_words_.load(QStringLiteral("qtbase_%1").arg(language),
                     QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    QCoreApplication::installTranslator(&qt_words_);
  QCoreApplication::installTranslator(&own_words_);  // the last one is asked first
  QApplication::setFont(font_for(language, system_font_));
  make_window();
}

void Application::set_theme(Theme theme) {
  QApplication::setPalette(theme == Theme::dark    ? dark_palette()
                           : theme == Theme::light ? light_palette()
                                                   : system_palette_);
}

bool Application::save_picture(const QString& path, const QSize& size, double scale) {
  session_.find_fixes_now();
  window_->resize(size);
  window_->show();
  QCoreApplication::processEvents();
  window_->show_example();
  while (window_->is_busy()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  QCoreApplication::processEvents();  // the layout follows what came
  QImage image(size * scale, QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  window_->render(&image);
  constexpr int kSmallest = 0;  // of PNG: no loss, and the most patient compression
  return image.save(path, nullptr, kSmallest);
}

}  // namespace shardplan::gui
