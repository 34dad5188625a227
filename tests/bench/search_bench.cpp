// A search over a million plans for a 70B model on 64 GPUs. The bar: 10 s on two cores.
#include <benchmark/benchmark.h>

#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/search/axes.h"
#include "questions/search/search.h"

namespace shardplan {
namespace {

Job job_70b() {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  return load_job(parse_json(R"({"model": "llama-2-70b", "cluster": {"name": "8x8xH100",
    "host_memory_bytes": 2147483648000, "nvme": {"bytes": 30000000000000}},
    "framework": "deepspeed", "workload": {"sequence_length": 4096}})",
                             "job.json"),
                  "job.json", context);
}

AxisValues a_million_plans() {
  AxisValues v;
  v.gpus = {8, 16, 24, 32, 48, 64};
  v.precisions = {"bf16-master", "bf16-autocast"};
  v.global_batch = 1536;
  v.micro_batches = {1, 2, 3, 4, 6, 8, 12, 16};
  v.reduce_buckets = {50'000'000, 100'000'000, 200'000'000, 500'000'000, 1'000'000'000};
  v.prefetch_buckets = {0, 20'000'000, 50'000'000, 200'000'000, 500'000'000};
  v.persistence_thresholds = {0, 10'000, 100'000, 1'000'000};
  return v;
}

void search_a_million(benchmark::State& state) {
  const Job job = job_70b();
  const SearchSpace space = make_space(job.model, job.plan, a_million_plans());
  const Calibration calibration = load_calibration();
  Goal goal;
  goal.objective = static_cast<Objective>(state.range(0));
  const SearchControl control{.threads = static_cast<unsigned>(state.range(1))};
  SearchResult result;
  for (auto _ : state) result = search(job.model, space, goal, calibration, control);
  state.counters["candidates"] = static_cast<double>(result.candidates);
  state.counters["estimated"] = static_cast<double>(result.estimated);
  state.counters["simulated"] = static_cast<double>(result.simulated);
  state.counters["front"] = static_cast<double>(result.front.size());
}
BENCHMARK(search_a_million)
    ->ArgNames({"objective", "threads"})
    ->ArgsProduct({{0, 1, 2, 3}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

constexpr std::int64_t kPrime = 104'729;  // a step through a space that varies all axes

/// Full estimates as a search makes them, all plans of a group with one run of its passes: the bar
/// is 10,000 a second and core. An iteration is a group.
void estimates_of_a_search(benchmark::State& state) {
  const Job job = job_70b();
  const SearchSpace space = make_space(job.model, job.plan, a_million_plans());
  const Calibration calibration = load_calibration();
  const std::int64_t members = space.below(space.work_fixed);
  std::int64_t group = 0, done = 0;
  for (auto _ : state) {
    group = (group + kPrime) % (space.size() / members);
    Choice choice = space.choice_at(group * members);
    Plan plan = space.plan_of(choice);
    const Passes passes = run_passes(job.model, plan, calibration.time);
    RuleCounts counts = no_counts(space);
    walk(space, plan, choice, space.work_fixed, space.axes.size(), counts, [&] {
      benchmark::DoNotOptimize(
          estimate(job.model, plan, passes, calibration, ReservedMemory::ratio));
      ++done;
    });
  }
  state.SetItemsProcessed(done);
}
BENCHMARK(estimates_of_a_search)->Unit(benchmark::kMicrosecond);

/// The same plans one by one, nothing shared.
void estimates_alone(benchmark::State& state) {
  const Job job = job_70b();
  const SearchSpace space = make_space(job.model, job.plan, a_million_plans());
  const Calibration calibration = load_calibration();
  std::int64_t index = 0;
  for (auto _ : state) {
    index = (index + kPrime) % space.size();
    const Plan plan = space.plan_of(space.choice_at(index));
    benchmark::DoNotOptimize(estimate(job.model, plan, calibration, ReservedMemory::ratio));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(estimates_alone)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardplan
