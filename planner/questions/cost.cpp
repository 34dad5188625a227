#include "questions/cost.h"

namespace shardplan {
namespace {

constexpr double kBillion = 1e9;
constexpr double kSecondsPerHour = 3600, kSecondsPerDay = 86'400, kJoulesPerKwh = 3.6e6;

std::optional<double> times(std::optional<double> a, double b) {
  return a ? std::optional(*a * b) : std::nullopt;
}

/// A price that somebody says stands alone: the list's spot price is of another offer.
void set_price(Cost& cost, const Plan& plan, const CostTerms& terms) {
  const Cluster& cluster = plan.cluster;
  const double nodes = static_cast<double>(cluster.nodes) + plan.engine_nodes;
  if (terms.price_per_gpu_hour) {
    cost.per_hour.on_demand = *terms.price_per_gpu_hour * static_cast<double>(plan.paid_gpus());
    return;
  }
  const bool said = cluster.price_per_hour || cluster.spot_price_per_hour;
  if (!said) cost.list = cluster.list_price;
  const Money node = cost.list ? Money{cost.list->on_demand, cost.list->spot}
                               : Money{cluster.price_per_hour, cluster.spot_price_per_hour};
  cost.per_hour = node * nodes;
}

/// Those that count: padding does not, and packed rows are full.
double tokens_of_sample(const Workload& w) {
  return w.lengths && !w.packing ? w.lengths->mean : static_cast<double>(w.sequence_length);
}

}  // namespace

Money operator*(const Money& money, double by) {
  return {times(money.on_demand, by), times(money.spot, by)};
}

double tokens_per_step(const Plan& plan) {
  const Workload& w = plan.workload;
  return static_cast<double>(plan.samples_at_once()) * static_cast<double>(plan.updates) *
         static_cast<double>(w.gradient_accumulation) * tokens_of_sample(w);
}

Cost cost_of(const Plan& plan, double step_seconds, const CostTerms& terms) {
  Cost cost;
  const double gpus = static_cast<double>(plan.paid_gpus());
  set_price(cost, plan, terms);
  cost.watts = times(plan.cluster.gpu.tdp_watts, gpus);
  if (step_seconds <= 0) return cost;
  const double steps = kBillion / tokens_per_step(plan);  // for a billion tokens
  cost.seconds_per_billion_tokens = steps * step_seconds;
  cost.gpu_hours_per_billion_tokens = cost.seconds_per_billion_tokens * gpus / kSecondsPerHour;
  cost.per_step = cost.per_hour * (step_seconds / kSecondsPerHour);
  cost.per_billion_tokens = cost.per_step * steps;
  cost.joules_per_step = times(cost.watts, step_seconds);
  cost.kwh_per_billion_tokens = times(cost.joules_per_step, steps / kJoulesPerKwh);
  cost.tokens = plan.workload.tokens;
  if (!cost.tokens) return cost;
  const double billions = *cost.tokens / kBillion;
  cost.days = billions * cost.seconds_per_billion_tokens / kSecondsPerDay;
  cost.gpu_hours = billions * cost.gpu_hours_per_billion_tokens;
  cost.whole = cost.per_billion_tokens * billions;
  cost.kwh = times(cost.kwh_per_billion_tokens, billions);
  return cost;
}

Cost cost_of(const Model& model, const Plan& plan, const Estimate& estimate,
             const CostTerms& terms) {
  Cost cost = cost_of(plan, estimate.time.step_seconds, terms);
  if (cost.days) cost.upkeep = upkeep_of(model, plan);
  return cost;
}

}  // namespace shardplan
