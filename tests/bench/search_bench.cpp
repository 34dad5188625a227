// A search over a million plans for a 70B model on 64 GPUs. The bar: 10 s on two cores.
#include <benchmark/benchmark.h>

#include <map>

#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "questions/search/axes.h"
#include "questions/search/search.h"

namespace shardplan {
namespace {

Job job_70b(const std::string& framework = "deepspeed") {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  Json job = parse_json(R"({"model": "llama-2-70b", "cluster": {"name": "8x8xH100",
    "host_memory_bytes": 2147483648000, "nvme": {"bytes": 30000000000000}},
    "workload": {"sequence_length": 4096}})",
                        "job.json");
  job["framework"] = framework;
  return load_job(job, "job.json", context);
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
  v.tensors = v.ulysses = {1};
  return v;
}

/// Every degree of Megatron-LM, over 1 to 64 GPUs.
AxisValues a_million_divisions() {
  AxisValues v;
  v.global_batch = 512;
  return v;
}

void time_search(benchmark::State& state, const Job& job, const AxisValues& values) {
  const SearchSpace space = make_space(job.model, job.plan, values);
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

void for_every_objective(benchmark::internal::Benchmark* search) {
  search->ArgNames({"objective", "threads"})
      ->ArgsProduct({{0, 1, 2, 3}, {1, 2}})
      ->MeasureProcessCPUTime()
      ->UseRealTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

void search_a_million(benchmark::State& state) {
  time_search(state, job_70b(), a_million_plans());
}
BENCHMARK(search_a_million)->Apply(for_every_objective);

void search_a_million_divisions(benchmark::State& state) {
  time_search(state, job_70b("megatron"), a_million_divisions());
}
BENCHMARK(search_a_million_divisions)->Apply(for_every_objective);

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

/// The same for plans that divide the network, in batches that share passes. An iteration is a
/// batch.
void estimates_of_divisions(benchmark::State& state) {
  const Job job = job_70b("megatron");
  const SearchSpace space = make_space(job.model, job.plan, a_million_divisions());
  const Calibration calibration = load_calibration();
  Plan plan = space.base;
  Choice choice(space.axes.size(), 0);
  RuleCounts counts = no_counts(space);
  std::map<PassKey, std::vector<Plan>> batches;
  walk(space, plan, choice, 0, space.axes.size(), counts,
       [&] { batches[pass_key(plan)].push_back(plan); });
  auto batch = batches.begin();
  std::int64_t done = 0;
  for (auto _ : state) {
    const Passes passes = run_passes(job.model, batch->second.front(), calibration.time);
    for (const Plan& p : batch->second)
      benchmark::DoNotOptimize(estimate(job.model, p, passes, calibration, ReservedMemory::ratio));
    done += static_cast<std::int64_t>(batch->second.size());
    if (++batch == batches.end()) batch = batches.begin();
  }
  state.SetItemsProcessed(done);
}
BENCHMARK(estimates_of_divisions)->Unit(benchmark::kMillisecond)->Iterations(120);

/// The plans of a million one by one, nothing shared.
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
