// A slider of the verdict page moves: from the key to the last pixel. The bar: 16 ms for Llama-2-7B
// with the allocator simulated, so that the number shown is the command line's.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <nlohmann/json.hpp>

#include "application.h"

namespace shardplan::gui {
namespace {

struct Moved {
  const char* pointer;
  std::vector<Json> values;
};

void ask_7b(Application& application) {
  application.session().document().replace(Json::parse(
      R"({"model": "llama-2-7b", "cluster": "8xA100-40GB", "checkpointing": "full",
          "framework": {"name": "deepspeed", "zero_stage": 3}})"));
}

/// Everything of the page but the fixes, which come from the background: job, estimate with the
/// allocator, timeline, all widgets, all pixels.
void slider_moves(benchmark::State& state, const Moved& moved) {
  Application application(*qApp);
  ask_7b(application);
  application.window().resize(1366, 768);
  application.window().show_page(3);
  application.window().show();
  QCoreApplication::processEvents();
  QImage image(application.window().size(), QImage::Format_RGB32);
  std::size_t next = 0;
  for (auto _ : state) {
    application.session().document().set(moved.pointer, moved.values[++next % moved.values.size()]);
    application.window().render(&image);
    state.PauseTiming();
    application.session().find_fixes_now();  // the background must not share the core
    state.ResumeTiming();
  }
  if (!application.session().answer().estimate) state.SkipWithError("no estimate");
}

BENCHMARK_CAPTURE(slider_moves, micro_batch, {"/workload/micro_batch", {1, 2, 4, 8}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(slider_moves, sequence_length, {"/workload/sequence_length", {1024, 2048, 4096}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(slider_moves, stage, {"/framework/zero_stage", {0, 1, 2, 3}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(slider_moves, checkpointing, {"/checkpointing", {"none", "selective", "full"}})
    ->Unit(benchmark::kMillisecond);

/// What follows in the background.
void fixes_are_found(benchmark::State& state) {
  Application application(*qApp);
  ask_7b(application);
  for (auto _ : state) application.session().find_fixes_now();
}
BENCHMARK(fixes_are_found)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardplan::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication qt(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
