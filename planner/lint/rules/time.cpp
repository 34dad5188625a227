// Where the step spends its time, and whether a key is behind it.
#include <fmt/format.h>

#include "base/format.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kTime = "docs/time.md";

constexpr Rule kRules[] = {
    {"time.stage-3-traffic"_rule, Severity::warning, "Stage 3 waits for its gathers",
     "Parameters travel twice a micro-batch; on PCIe or Ethernet that takes longer than computing "
     "with them.",
     "docs/time.md; issue 3349 of DeepSpeed",
     "Use stage 2 if it fits, a larger micro-batch, or hpZ (zero_hpz_partition_size)."},
    {"time.slow-network"_rule, Severity::warning,
     "The network between nodes is slower than a step needs",
     "Gradients and parameters wait for it. Sockets instead of InfiniBand or RoCE are the usual "
     "reason.",
     "docs/time.md; nccl issue 766", "Check NCCL_DEBUG=INFO for NET/IB; accumulate more."},
    {"time.offload"_rule, Severity::warning, "Offload takes most of the step",
     "Copies over PCIe and the update on the CPU are longer than forward and backward.",
     "docs/time.md; issues 6834, 1635 of DeepSpeed",
     "Accumulate more micro-batches a step, and give every rank its CPU threads."},
    {"zero.offload-unneeded"_rule, Severity::warning, "Offload that the job does not need",
     "The states fit the GPUs, bound included, and the step would be faster there.", kTime,
     "Remove the offload blocks."},
    {"zero.stage-unneeded"_rule, Severity::note, "A lower stage fits and is faster",
     "Stage 3 pays for every gather; stage 2 holds the parameters.", kTime, "Use the lower stage."},
    {"time.launch-blocking"_rule, Severity::warning, "Every launch waits for its kernel",
     "CUDA_LAUNCH_BLOCKING=1 is for debugging: host and GPU take turns, and no exchange runs "
     "beside "
     "computation.",
     "docs/time.md; CUDA's programming guide, environment variables",
     "Unset CUDA_LAUNCH_BLOCKING once the fault is found."},
    {"time.cpu-adam-build"_rule, Severity::note, "The offloaded optimizer is compiled at start-up",
     "DeepSpeedCPUAdam is built just in time, with the machine's compiler and CUDA toolkit; a "
     "mismatch of versions stops the job.",
     "deepspeed/ops/op_builder/cpu_adam.py; issues 1077, 1846 of DeepSpeed",
     "Run ds_report before the job, or install DeepSpeed with DS_BUILD_CPU_ADAM=1."},
};

constexpr const char* kStage = "zero_optimization.stage";
constexpr const char* kOffloadOptimizer = "zero_optimization.offload_optimizer";
constexpr const char* kOffloadParam = "zero_optimization.offload_param";

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string percent(double part) {
  return fmt::format("{:.0f} %", part * 100);
}

bool offloads(const DsValues& v, const char* block) {
  return v.maybe_text(fmt::format("{}.device", block)).value_or("none") != "none";
}

void check_traffic(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  const TimeEstimate& t = job.estimate().time;
  const double exposed = share(t.exposed_communication_seconds, t.step_seconds);
  constexpr double kTooMuch = 0.3;
  if (exposed < kTooMuch) return;
  const Cluster& cluster = job.job().plan.cluster;
  constexpr double kSockets = 3.2e9;  // 25 Gbit/s for each GPU
  if (cluster.nodes > 1 && cluster.inter_node_bandwidth <= kSockets)
    findings.warning("time.slow-network"_rule, "zero_optimization",
                     say("{} of the step waits for a network of {:.1f} GB/s a GPU",
                         percent(exposed), cluster.inter_node_bandwidth / 1e9),
                     "InfiniBand or RoCE");
  else if (s.values.stage() == 3)
    findings.warning("time.stage-3-traffic"_rule, kStage,
                     say("{} of the step waits for gathers and reductions", percent(exposed)),
                     "a lower stage, or a larger micro-batch");
}

void check_launches(const PricedJob& job, DsFindings& findings) {
  if (!job.job().plan.launch_blocking) return;
  const auto without = job.with_job({{"launch_blocking", false}});
  if (!without || without->price.seconds_per_token == 0) return;
  const double slower = job.price().seconds_per_token / without->price.seconds_per_token - 1;
  findings.warning("time.launch-blocking"_rule, "",
                   say("CUDA_LAUNCH_BLOCKING=1 makes the step {} longer", percent(slower)),
                   "launch_blocking false");
}

void check_stage(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  if (s.values.stage() != 3 || offloads(s.values, kOffloadOptimizer) ||
      offloads(s.values, kOffloadParam))
    return;
  const auto lower = job.with({set_key(kStage, 2)});
  if (!lower || !lower->price.fits || job.price().seconds_per_token == 0) return;
  const double faster = 1 - lower->price.seconds_per_token / job.price().seconds_per_token;
  constexpr double kWorthwhile = 0.05;
  if (faster >= kWorthwhile)
    findings.note("zero.stage-unneeded"_rule, kStage,
                  say("stage 2 needs {} of each GPU and saves {} of the step",
                      format_bytes(lower->price.gpu), percent(faster)),
                  "2");
}

void check_offload(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  const bool optimizer = offloads(s.values, kOffloadOptimizer);
  const bool parameters = s.values.stage() == 3 && offloads(s.values, kOffloadParam);
  if (s.values.stage() == 0 || !(optimizer || parameters)) return;
  const auto without = job.with({remove_key(kOffloadOptimizer), remove_key(kOffloadParam)});
  const char* key = optimizer ? kOffloadOptimizer : kOffloadParam;
  if (without && without->price.fits) {
    findings.warning(
        "zero.offload-unneeded"_rule, key,
        say("without offload the job needs {} of each GPU and takes {} of the time",
            format_bytes(without->price.gpu),
            percent(share(without->price.seconds_per_token, job.price().seconds_per_token))),
        "no offload");
    return;
  }
  const TimeEstimate& t = job.estimate().time;
  const double host = share(t.exposed_copy_seconds + t.optimizer_seconds, t.step_seconds);
  constexpr double kMost = 0.5;
  if (host >= kMost)
    findings.warning("time.offload"_rule, key,
                     say("{} of a step of {} goes to copies and the CPU's update", percent(host),
                         format_seconds(t.step_seconds)),
                     "more accumulation, or less offload");
}

}  // namespace

std::span<const Rule> time_rules() {
  return kRules;
}

void check_time(const LintSubject& s, LintFindings& findings) {
  if (s.values.stage() > 0 && offloads(s.values, kOffloadOptimizer))
    findings.config.note("time.cpu-adam-build"_rule, kOffloadOptimizer,
                         "uses DeepSpeedCPUAdam, which is compiled at start-up");
  if (s.priced == nullptr) return;
  check_traffic(s, *s.priced, findings.config);
  check_launches(*s.priced, findings.config);
  check_stage(s, *s.priced, findings.config);
  check_offload(s, *s.priced, findings.config);
}

}  // namespace shardplan
