// shardplan-gui: the questions of shardplan in a window.
#include <fmt/format.h>

#include <QCommandLineParser>
#include <cstdio>

#include "application.h"
#include "base/diagnostic.h"
#include "models/dropped_file.h"

namespace shardplan::gui {
namespace {

enum Exit { kDone = 0, kUsage = 2, kBadInput = 3, kInternal = 1 };

struct Arguments {
  QString job, page, language, theme, picture;
  QSize size{1366, 768};
  double scale = 1;
};

int usage_error(const QString& message) {
  fmt::print(stderr, "shardplan-gui: {}\nRun with --help for an example.\n", message.toStdString());
  return kUsage;
}

/// "1366x768"; an empty size for anything else.
QSize size_of(const QString& text) {
  const QStringList parts = text.split(QLatin1Char('x'));
  const QSize size(parts.value(0).toInt(), parts.value(1).toInt());
  const QRect sane(0, 0, 16384, 16384);
  return parts.size() == 2 && sane.contains(size.width(), size.height()) ? size : QSize();
}

std::optional<Theme> theme_of(const QString& name) {
  if (name == QStringLiteral("light")) return Theme::light;
  if (name == QStringLiteral("dark")) return Theme::dark;
  return name.isEmpty() || name == QStringLiteral("system") ? std::optional(Theme::system)
                                                            : std::nullopt;
}

/// A job, or another file that says one, as when it is dropped on the window.
void open_file(JobDocument& document, const QString& path) {
  if (take_file(document, path) != FileKind::record) return;
  throw InputError({.file = path.toStdString(),
                    .message = "not a job",
                    .expected = "an object with \"model\" and \"cluster\""});
}

/// Not yet where a trainer's file wants a machine, which a window can ask for and a picture cannot.
bool opens(JobDocument& document, const QString& path, bool is_picture) {
  try {
    open_file(document, path);
    return true;
  } catch (const InputError& e) {
    if (is_picture || e.diagnostic().key != "cluster") throw;
    return false;
  }
}

int run(QApplication& qt, const Arguments& a) {
  const bool is_picture = !a.picture.isEmpty();
  const QString start = !a.page.isEmpty()  ? a.page
                        : !a.job.isEmpty() ? QStringLiteral("verdict")
                        : is_picture       ? QStringLiteral("machine")
                                           : QString();  // where it was left
  const int page = static_cast<int>(MainWindow::page_names().indexOf(start));
  if (page < 0 && !start.isEmpty())
    return usage_error(QStringLiteral("--page: found '%1'; expected one of %2")
                           .arg(a.page, MainWindow::page_names().join(QStringLiteral(", "))));
  const auto theme = theme_of(a.theme);
  if (!theme) return usage_error(QStringLiteral("--theme: expected light, dark or system"));
  if (a.size.isEmpty())
    return usage_error(QStringLiteral("--size: expected a size such as 1366x768"));
  if (a.scale < 0.5 || a.scale > 8)
    return usage_error(QStringLiteral("--scale: expected 0.5 to 8"));

  Application application(qt);
  if (!is_picture) application.resume();  // a picture is the same on every machine
  if (!a.language.isEmpty()) application.set_language(a.language);
  if (*theme != Theme::system) application.set_theme(*theme);
  const bool waits =
      !a.job.isEmpty() && !opens(application.session().document(), a.job, is_picture);
  application.window().show_page(page);
  if (waits) application.window().ask_for_machine(a.job);
  if (is_picture) {
    if (application.session().answer().error && !a.job.isEmpty())
      throw InputError(*application.session().answer().error);
    if (application.save_picture(a.picture, a.size, a.scale)) return kDone;
    throw InputError({.file = a.picture.toStdString(), .message = "cannot be written"});
  }
  application.window().show();
  return QApplication::exec();
}

}  // namespace
}  // namespace shardplan::gui

int main(int argc, char** argv) {
  using namespace shardplan::gui;
  // Pictures, the help and the version need no display.
  for (int i = 1; i < argc; ++i)
    for (const char* flag : {"--export", "--help", "--version", "-h", "-v"})
      if (QByteArray(argv[i]).startsWith(flag) && qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM"))
        qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication qt(argc, argv);
  QApplication::setApplicationName(QStringLiteral("shardplan"));
  QApplication::setOrganizationName(QStringLiteral("shardplan"));
  QApplication::setApplicationVersion(QStringLiteral(SHARDPLAN_VERSION));
  QCommandLineParser parser;
  parser.setApplicationDescription(QStringLiteral(
      "Will this model train on these GPUs? The questions of shardplan in a window.\n"
      "Example: shardplan-gui --job job.json --page verdict --export verdict.png"));
  parser.addHelpOption();
  parser.addVersionOption();
  const auto add = [&](const char* name, const char* help, const char* value) {
    parser.addOption({QLatin1String(name), QLatin1String(help), QLatin1String(value)});
  };
  add("job", "open a job file", "FILE");
  add("page", "show a page: start, machine, model, training, verdict, plan, ...", "PAGE");
  add("export", "write a picture of the page and exit; needs no display", "PNG");
  add("size", "of the picture: 1366x768", "WxH");
  add("scale", "of the picture, for displays of high density: 2", "NUMBER");
  add("language", "en, ja or ko", "CODE");
  add("theme", "light, dark or system", "NAME");
  parser.addPositionalArgument(QStringLiteral("job"), QStringLiteral("a job file to open"),
                               QStringLiteral("[JOB]"));
  parser.process(qt);
  Arguments a{parser.value(QStringLiteral("job")), parser.value(QStringLiteral("page")),
              parser.value(QStringLiteral("language")), parser.value(QStringLiteral("theme")),
              parser.value(QStringLiteral("export"))};
  if (a.job.isEmpty()) a.job = parser.positionalArguments().value(0);
  if (parser.isSet(QStringLiteral("size"))) a.size = size_of(parser.value(QStringLiteral("size")));
  if (parser.isSet(QStringLiteral("scale")))
    a.scale = parser.value(QStringLiteral("scale")).toDouble();
  try {
    return run(qt, a);
  } catch (const shardplan::InputError& e) {
    fmt::print(stderr, "shardplan-gui: {}\n", e.what());
    return kBadInput;
  } catch (const std::exception& e) {
    fmt::print(stderr, "shardplan-gui: internal error: {}\n", e.what());
    return kInternal;
  }
}
