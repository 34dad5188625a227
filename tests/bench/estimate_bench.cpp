// Time of one estimate. The bar without the simulated allocator, as searches ask: 100 µs for
// Llama-2-7B under ZeRO-3 with the model built, and the same for any number of ranks and layers.
// With it, as single questions ask: 50 ms for 80 layers.
#include <benchmark/benchmark.h>

#include "hardware/gpu_names.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/compare.h"
#include "questions/fixes.h"
#include "questions/largest.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

Model llama_2_7b(std::int64_t layers = 32) {
  return model_of(R"({"model_type": "llama", "vocab_size": 32000, "num_hidden_layers": )" +
                  std::to_string(layers) + "}");
}

Plan zero(int stage, std::int64_t ranks) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Plan plan = zero_plan(stage, "bf16-master", ranks);
  plan.cluster.gpu = choose_gpu("H100-SXM-80GB", hardware).gpu->gpu;
  plan.cluster.intra_node_bandwidth = *plan.cluster.gpu.nvlink_bandwidth;
  plan.workload.sequence_length = 4096;
  return plan;
}

void run(benchmark::State& state, const Model& model, const Plan& plan,
         ReservedMemory reserved = ReservedMemory::ratio) {
  const Calibration calibration = load_calibration();
  for (auto _ : state) benchmark::DoNotOptimize(estimate(model, plan, calibration, reserved));
}

void estimate_llama_2_7b(benchmark::State& state) {
  run(state, llama_2_7b(), zero(static_cast<int>(state.range(0)), state.range(1)));
}
BENCHMARK(estimate_llama_2_7b)
    ->ArgNames({"stage", "ranks"})
    ->ArgsProduct({{0, 1, 2}, {8}})
    ->ArgsProduct({{3}, {1, 4, 64, 1024}})
    ->Unit(benchmark::kMicrosecond);

void estimate_by_layers(benchmark::State& state) {
  run(state, llama_2_7b(state.range(1)), zero(static_cast<int>(state.range(0)), 64));
}
BENCHMARK(estimate_by_layers)
    ->ArgNames({"stage", "layers"})
    ->ArgsProduct({{2, 3}, {32, 80, 126}})
    ->Unit(benchmark::kMicrosecond);

void estimate_with_allocator(benchmark::State& state) {
  run(state, llama_2_7b(state.range(1)), zero(static_cast<int>(state.range(0)), 64),
      ReservedMemory::simulated);
}
BENCHMARK(estimate_with_allocator)
    ->ArgNames({"stage", "layers"})
    ->ArgsProduct({{0, 2, 3}, {32, 80}})
    ->Unit(benchmark::kMillisecond);

void estimate_checkpointed(benchmark::State& state) {
  Plan plan = zero(3, 8);
  plan.checkpointing = Checkpointing::full;
  run(state, llama_2_7b(), plan);
}
BENCHMARK(estimate_checkpointed)->Unit(benchmark::kMicrosecond);

/// Under torch.compile on one GPU: the bars are 1 ms, and 10 ms with the allocator.
void estimate_compiled(benchmark::State& state) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json document = parse_json(
      R"({"model": "llama-3.1-8b", "cluster": "1xH100", "trainer": "hf_trainer", "compile": true})",
      "job.json");
  const Job job = load_job(document, "job.json", {.hardware = &hardware});
  run(state, job.model, job.plan,
      state.range(0) == 0 ? ReservedMemory::ratio : ReservedMemory::simulated);
}
BENCHMARK(estimate_compiled)->ArgName("allocator")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

/// 405B over 16,384 GPUs: tensor 8 × pipeline 16 × context 1 or 2 × data. The bar is 1 ms.
void estimate_405b_on_16384(benchmark::State& state) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const std::string path = SHARDPLAN_SOURCE_DIR "/configs/jobs/llama-3.1-405b-megatron.json";
  Json document = read_json_file(path);
  document["parallel"]["context"] = state.range(0);
  const Job job = load_job(document, path, {.hardware = &hardware});
  run(state, job.model, job.plan);
}
BENCHMARK(estimate_405b_on_16384)
    ->ArgName("context")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMicrosecond);

void build_llama_2_7b(benchmark::State& state) {
  const ModelConfig config = load_model_config(
      parse_json(R"({"model_type": "llama", "vocab_size": 32000})", "config.json"), "config.json");
  for (auto _ : state) benchmark::DoNotOptimize(build_model(config, {}));
}
BENCHMARK(build_llama_2_7b)->Unit(benchmark::kMicrosecond);

void load_hardware(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load_hardware_catalog());
}
BENCHMARK(load_hardware)->Unit(benchmark::kMicrosecond);

void load_a_job(benchmark::State& state) {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const Json job = parse_json(R"({"model": "llama-2-7b", "cluster": "8xH100"})", "job.json");
  for (auto _ : state) benchmark::DoNotOptimize(load_job(job, "job.json", context));
}
BENCHMARK(load_a_job)->Unit(benchmark::kMicrosecond);

void find_what_helps(benchmark::State& state) {
  const Model model = llama_2_7b();
  Plan plan = zero(3, 4);
  plan.cluster.gpu.usable = Bytes(40'000'000'000);
  const Estimate now = estimate(model, plan, Calibration{});
  for (auto _ : state) benchmark::DoNotOptimize(find_fixes(model, plan, now, Calibration{}));
}
BENCHMARK(find_what_helps)->Unit(benchmark::kMicrosecond);

void largest_batch(benchmark::State& state) {
  const Model model = llama_2_7b();
  Plan plan = zero(3, 8);
  plan.cluster.gpu.usable = Bytes(80'000'000'000);
  for (auto _ : state) benchmark::DoNotOptimize(largest_micro_batch(model, plan, Calibration{}));
}
BENCHMARK(largest_batch)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardplan
