// One report, and a sweep of a thousand jobs. The bar: 10,000 jobs in 30 s on two cores.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>

#include "load/calibration.h"
#include "load/hardware.h"
#include "report/batch/batch.h"
#include "report/build.h"
#include "report/render/render.h"

namespace shardplan::report {
namespace {

constexpr const char* kSweep = R"({
  "job": {"framework": "deepspeed", "checkpointing": "full"},
  "sweep": {
    "model": ["gpt2", "tinyllama-1.1b", "llama-2-7b", "mistral-7b", "llama-2-70b"],
    "gpus": ["1xH100", "4xA100-40GB", "8xH100", "2x8xH100", "8x8xH200"],
    "stage": [0, 1, 2, 3],
    "workload.micro_batch": [1, 2, 4, 8, 16],
    "workload.sequence_length": [512, 1024]
  }
})";

void sweep(benchmark::State& state) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  const std::vector<BatchJob> jobs = sweep_jobs(parse_json(kSweep, "sweep.json"), "sweep.json");
  for (auto _ : state) {
    const auto outcomes = run_batch(jobs, hardware, calibration,
                                    static_cast<unsigned>(state.range(0)), [](std::size_t) {});
    benchmark::DoNotOptimize(outcomes.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(jobs.size()));
}
BENCHMARK(sweep)->Arg(1)->Arg(2)->Unit(benchmark::kSecond)->UseRealTime()->Iterations(1);

void page(benchmark::State& state) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Calibration calibration = load_calibration();
  const MeasuredRuns runs = built_in_records(hardware);
  const Json job = parse_json(R"({"model": "llama-2-7b", "cluster": "4xA100-40GB"})", "job.json");
  for (auto _ : state) {
    const Findings found = find_out(load_job(job, "job.json", {.hardware = &hardware}), calibration,
                                    runs, {.name = "job.json"});
    benchmark::DoNotOptimize(report_html(job_report(found), Messages("en")));
  }
}
BENCHMARK(page)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardplan::report
