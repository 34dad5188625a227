#include "estimate/time.h"

#include <algorithm>

#include "estimate/estimate.h"

namespace shardplan {
namespace {

/// Dense peak of the type that matrix products run in.
double peak_flops(const Plan& plan) {
  const PeakFlops& peak = plan.cluster.gpu.peak;
  switch (plan.precision.compute) {
    case DType::bf16: return peak.bf16.value_or(0);
    case DType::f16: return peak.fp16.value_or(0);
    default: return peak.fp32.value_or(0);
  }
}

struct Totals {
  double compute = 0, ideal_compute = 0, communication = 0, copies = 0, nvme = 0;
};

class Clock {
 public:
  Clock(const Plan& plan, const Efficiencies& eff)
      : cluster_(plan.cluster), eff_(eff), peak_(peak_flops(plan)) {}

  void run(const Program& program) { run_range(program.events, 0, program.events.size(), 1.0); }
  const Totals& totals() const { return totals_; }

 private:
  void run_range(const std::vector<Event>& events, std::size_t begin, std::size_t end,
                 double times) {
    std::vector<double> scale{times};
    for (std::size_t i = begin; i < end; ++i) {
      const Event& e = events[i];
      if (e.kind == Event::Kind::begin_repeat) {
        scale.push_back(scale.back() * static_cast<double>(e.count));
      } else if (e.kind == Event::Kind::end_repeat) {
        scale.pop_back();
      } else {
        add(e, scale.back());
      }
    }
  }

  void add(const Event& e, double times) {
    if (e.kind == Event::Kind::compute) {
      const double products = peak_ > 0 ? e.flops / peak_ : 0;
      const double memory = e.moved_bytes / cluster_.gpu.memory_bandwidth.value_or(1e12);
      const double launches = static_cast<double>(e.count) * eff_.launch_seconds;
      totals_.compute +=
          times * std::max(products / eff_.matmul + memory / eff_.memory, launches);
      totals_.ideal_compute += times * std::max(products, memory);
    } else if (e.kind == Event::Kind::collective) {
      const std::int64_t ranks = cluster_.world();
      const double bandwidth =
          cluster_.nodes > 1
              ? std::min(cluster_.inter_node_bandwidth * static_cast<double>(cluster_.gpus_per_node),
                         cluster_.intra_node_bandwidth)
              : cluster_.intra_node_bandwidth;
      constexpr double kCallSeconds = 20e-6;
      if (bandwidth > 0)
        totals_.communication +=
            times * (static_cast<double>(bytes_sent(e.collective, e.bytes, ranks)) /
                         (bandwidth * eff_.network) +
                     kCallSeconds * static_cast<double>(e.count));
    } else if (e.kind == Event::Kind::copy) {
      const double ranks = static_cast<double>(cluster_.gpus_per_node);
      if (e.link == LinkKind::nvme) {
        const auto& nvme = cluster_.nvme;
        const auto bandwidth = e.to_device ? (nvme ? nvme->read_bandwidth : std::nullopt)
                                           : (nvme ? nvme->write_bandwidth : std::nullopt);
        constexpr double kAssumedNvme = 5e9;  // one Gen4 drive
        totals_.copies +=
            times * static_cast<double>(e.bytes) * ranks / bandwidth.value_or(kAssumedNvme);
      } else {
        constexpr double kAssumedPcie = 31.5e9;  // Gen4 x16
        totals_.copies += times * static_cast<double>(e.bytes) /
                          (cluster_.gpu.pcie_bandwidth.value_or(kAssumedPcie) * eff_.host_link);
      }
    }
  }

  const Cluster& cluster_;
  const Efficiencies& eff_;
  double peak_;
  Totals totals_;
};

/// Whether gradients and gathers run beside computation.
bool overlaps(const Plan& plan) {
  if (plan.framework.kind == FrameworkKind::deepspeed)
    return plan.framework.deepspeed.zero.overlap_comm;
  return true;
}

}  // namespace

TimeEstimate estimate_time(const Program& program, const Plan& plan, double model_flops,
                           const Efficiencies& eff) {
  TimeEstimate t;
  const double peak = peak_flops(plan);
  if (peak <= 0 || !plan.cluster.gpu.memory_bandwidth || model_flops <= 0) return t;
  Clock clock(plan, eff);
  clock.run(program);
  const Totals& sum = clock.totals();
  t.compute_seconds = sum.compute;
  t.communication_seconds = sum.communication;
  t.exposed_communication_seconds =
      overlaps(plan) ? std::max(0.0, sum.communication - sum.compute) : sum.communication;
  t.copy_seconds = sum.copies;
  t.cpu_optimizer_seconds = program.cpu_optimizer_elements *
                            static_cast<double>(plan.cluster.gpus_per_node) /
                            eff.cpu_adam_elements_per_second;
  t.step_seconds = t.compute_seconds + t.exposed_communication_seconds + t.copy_seconds +
                   t.cpu_optimizer_seconds;
  const Workload& w = plan.workload;
  const double tokens = static_cast<double>(w.micro_batch * w.gradient_accumulation) *
                        static_cast<double>(w.sequence_length) *
                        static_cast<double>(plan.cluster.world());
  t.tokens_per_second = tokens / t.step_seconds;
  t.mfu = model_flops / t.step_seconds / peak;
  t.speed_of_light_seconds = std::max(sum.ideal_compute, sum.communication * eff.network);
  return t;
}

}  // namespace shardplan
