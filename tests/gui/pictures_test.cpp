// The pages beside the pictures of them in tests/gui/pictures: three sizes, two themes, three
// languages. With SHARDPLAN_UPDATE_GOLDEN in the environment, pictures that differ are written
// again.
//
// Letters are those of fonts-dejavu-core and fonts-noto-cjk, which tools/install_packages.sh
// brings, as Debian's or Ubuntu's Qt paints them: the comparison allows for what versions of font
// libraries change. Without these fonts there is nothing to compare, and the test is skipped.
//
// What changes with every calibration, record or entry of the catalogue is painted over in both
// pictures; its place is compared. The job of the other figures is one of the native engine, whose
// memory is counted to the byte.
#include <gtest/gtest.h>

#include <QAbstractScrollArea>
#include <QApplication>
#include <QComboBox>
#include <QFontDatabase>
#include <QLineEdit>
#include <QPainter>
#include <QTest>
#include <QToolButton>
#include <filesystem>

#include "application.h"
#include "gui/picture_difference.h"
#include "gui_testing.h"
#include "models/record_library.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCounted = R"({"model": "gpt2", "cluster": "4xA100-40GB",
    "framework": {"name": "native", "zero_stage": 2}, "precision": "bf16-master",
    "workload": {"micro_batch": 64, "sequence_length": 512}})";
/// Has files that run it, and findings.
constexpr const char* kDeepSpeed = R"({"model": "gpt2", "cluster": "4xA100-40GB",
    "checkpointing": "full", "workload": {"micro_batch": 8, "sequence_length": 512},
    "framework": {"name": "deepspeed", "ds_config": {"train_batch_size": 30,
      "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "overlap_com": true}}}})";

/// Its memory is counted to the byte, and a record is never changed.
constexpr const char* kRecord = "h100-1x-native-z0-gpt2-fp32-b2-s512-accumulation8-stages-alike";

struct Pictured {
  const char* page;
  const char* job;
  std::vector<const char*> covered;  ///< widgets, by their names; of tables their rows
  void (*prepare)(MainWindow& window) = nullptr;
};

/// One record alone, by a figure that is exact.
void choose_record(MainWindow& window) {
  auto* figure = window.findChild<QComboBox*>(QStringLiteral("accuracy_figure"));
  figure->setCurrentIndex(figure->findData(static_cast<int>(Figure::allocated_peak)));
  window.findChild<QLineEdit*>(QStringLiteral("accuracy_words"))
      ->setText(QString::fromLatin1(kRecord));
}

const std::vector<Pictured>& pictured() {
  static const std::vector<Pictured> kPages{
      {"start", kCounted, {}},
      {"machine", kCounted, {"detected", "detected_memory", "catalogue_gpus"}},
      {"model", kCounted, {"catalogue_models"}},
      {"training", kDeepSpeed, {"summary"}},
      {"verdict", kCounted, {"next_step", "rates", "time", "time_legend", "fixes", "gpu_margin"}},
      {"plan", kDeepSpeed, {"summary"}},
      {"compare", kCounted, {"comparison"}},
      {"accuracy", kCounted, {"accuracy_like", "accuracy_about"}, choose_record},
      {"validate", kCounted, {}},
      {"rent", kCounted, {"rent_summary"}}};
  return kPages;
}

class Pictures : public testing::TestWithParam<const char*> {
 protected:
  /// Beside the built-in records, as a person adds it.
  static void SetUpTestSuite() {
    const fs::path record = fs::path(SHARDPLAN_SOURCE_DIR) / "data/measurements/training/native" /
                            (std::string(kRecord) + ".json");
    const RecordLibrary::Added added =
        RecordLibrary().add({QString::fromStdString(record.string())}, load_workbench().hardware);
    ASSERT_EQ(added.records, 1);
  }
  void SetUp() override {
    for (const char* family :
         {"DejaVu Sans", "DejaVu Sans Mono", "Noto Sans CJK JP", "Noto Sans CJK KR"})
      if (!QFontDatabase::families().contains(QLatin1String(family)))
        GTEST_SKIP() << "no font " << family << ": tools/install_packages.sh window-tests";
    QApplication::setFont(QFont(QStringLiteral("DejaVu Sans"), 9));
    QApplication::setCursorFlashTime(0);
    application_ = std::make_unique<Application>(*qApp);
    application_->set_language(QString::fromLatin1(GetParam()));
    window().show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window(), static_cast<int>(kHangs.count())));
  }
  MainWindow& window() { return application_->window(); }

  void show(const Pictured& page) {
    ask(application_->session(), page.job);
    window().show_page(
        static_cast<int>(MainWindow::page_names().indexOf(QLatin1String(page.page))));
    application_->session().find_fixes_now();
    while (window().is_busy()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    if (page.prepare != nullptr) page.prepare(window());
  }

  /// The window as it is, what is `covered` painted over.
  QImage take(const Pictured& page) {
    QCoreApplication::processEvents();
    QCoreApplication::processEvents();  // the layout follows what came
    // The button that clears a line fades in by the clock.
    for (QToolButton* button : window().findChildren<QToolButton*>())
      if (const auto* line = qobject_cast<QLineEdit*>(button->parentWidget());
          line != nullptr && button->inherits("QLineEditIconButton") && !line->text().isEmpty())
        button->setProperty("opacity", 1.0);
    QImage image(window().size(), QImage::Format_RGB32);
    window().render(&image);
    QPainter painter(&image);
    for (const char* name : page.covered) {
      const auto* widget = window().findChild<QWidget*>(QLatin1String(name));
      EXPECT_NE(widget, nullptr) << page.page << ": " << name;
      if (widget == nullptr || !widget->isVisible()) continue;
      const auto* area = qobject_cast<const QAbstractScrollArea*>(widget);
      const QWidget* covered = area != nullptr ? area->viewport() : widget;
      painter.fillRect(QRect(covered->mapTo(&window(), QPoint()), covered->size()), Qt::gray);
    }
    return image;
  }

  std::unique_ptr<Application> application_;
};

void expect_as_stored(const QImage& whole, const std::string& name) {
  const fs::path stored = fs::path(SHARDPLAN_SOURCE_DIR) / "tests/gui/pictures" / name;
  const QImage actual = reduced(whole);
  const PictureDifference difference =
      difference_of(QImage(QString::fromStdString(stored.string())), actual);
  if (!difference.is_seen()) return;
  const auto write = [](const QImage& image, const fs::path& path) {
    fs::create_directories(path.parent_path());
    constexpr int kSmallest = 0;  // of PNG: no loss, and the most patient compression
    EXPECT_TRUE(image.save(QString::fromStdString(path.string()), "PNG", kSmallest)) << path;
  };
  if (qEnvironmentVariableIsSet("SHARDPLAN_UPDATE_GOLDEN")) return write(actual, stored);
  const fs::path seen = fs::path(SHARDPLAN_PICTURES) / name;
  const fs::path marked = fs::path(SHARDPLAN_PICTURES) / ("difference-" + name);
  write(whole, seen);
  write(difference.map, marked);
  ADD_FAILURE() << stored << " is not what the page looks like: " << difference.differing
                << " pixels differ. It looks like " << seen << ", and the places are red in "
                << marked << ". If it is meant: SHARDPLAN_UPDATE_GOLDEN=1.";
}

TEST_P(Pictures, AreAsStored) {
  for (const Pictured& page : pictured()) {
    show(page);
    for (const auto& [theme, theme_name] :
         {std::pair(Theme::light, "light"), std::pair(Theme::dark, "dark")}) {
      application_->set_theme(theme);
      for (const QSize& size : {QSize(1366, 768), QSize(1600, 900), QSize(1920, 1080)}) {
        window().resize(size);
        ASSERT_EQ(window().size(), size);
        expect_as_stored(take(page), std::string(page.page) + "-" + std::to_string(size.width()) +
                                         "-" + theme_name + "-" + GetParam() + ".png");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Pictures, testing::Values("en", "ja", "ko"));

}  // namespace
}  // namespace shardplan::gui
