// Linting, and refusing what is no configuration. The bar for a refusal: one second.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lint/lint.h"
#include "load/calibration.h"
#include "load/hardware.h"

namespace shardplan {
namespace {

constexpr const char* kConfig = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 500000000,
  "stage3_prefetch_bucket_size": 50000000, "stage3_max_live_parameters": 1000000000,
  "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}})";

std::string nested(int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += "{\"a\": ";
  return text + "1" + std::string(static_cast<std::size_t>(levels), '}');
}

void lint_text(benchmark::State& state, const std::string& text, const Json& job) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  LintRequest request;
  request.config = SourceText{"ds.json", text};
  request.job = job;
  request.hardware = &hardware;
  request.calibration = &calibration;
  for (auto _ : state) benchmark::DoNotOptimize(lint(request).findings.size());
}

void refuse(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    try {
      benchmark::DoNotOptimize(parse_json(text, "ds.json"));
      state.SkipWithError("it was not refused");
    } catch (const InputError& e) {
      benchmark::DoNotOptimize(e.what());
    }
  }
}

BENCHMARK_CAPTURE(lint_text, file_alone, kConfig, Json::object())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lint_text, every_key_priced, kConfig,
                  Json{{"model", "llama-2-7b"}, {"cluster", "8xH100"}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lint_text, thousand_levels, nested(1000), Json::object())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(refuse, thousand_levels, nested(1000))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(refuse, ten_megabytes_and_one, "\"" + std::string(10'000'001, 'x') + "\"")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardplan
