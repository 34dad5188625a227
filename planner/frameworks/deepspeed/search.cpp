#include "frameworks/deepspeed/search.h"

#include <fmt/format.h>

#include "frameworks/registry.h"

namespace shardplan {
namespace {

constexpr const char* kStrategies = "--frameworks/--zero-stages";

const ZeroOptions& searched_zero(const Plan& plan) {
  return plan.framework.deepspeed.zero;
}

/// The job's own options at its own stage, DeepSpeed's defaults for the rest of another one.
Strategy zero_strategy(const Plan& base, int stage) {
  Plan plan = base;
  const ZeroOptions* own = zero_options(base);
  if (own == nullptr || own->stage != stage) set_zero_stage(plan, stage);
  return {fmt::format("ZeRO-{}", stage), plan.framework};
}

std::vector<FrameworkRule> degree_rules(const RuleContext& context) {
  return {{"tensor",
           false,
           {"DeepSpeed refuses AutoTP at ZeRO stage 3 before 0.19.4", kStrategies,
            [](const Plan& p, std::size_t) {
              const DeepSpeedOptions& o = p.framework.deepspeed;
              return p.parallel.tensor > 1 && o.zero.stage == 3 &&
                     o.version < DeepSpeedVersion{0, 19, 4};
            }}},
          {"ulysses",
           true,
           {"AutoTP and Ulysses exclude each other under DeepSpeed", "--tensor-degrees",
            [](const Plan& p, std::size_t) {
              return p.parallel.tensor > 1 && p.parallel.sequence > 1;
            }}},
          {"pipeline",
           true,
           {"DeepSpeed's pipeline wants the model written as a PipelineModule: not tried unasked",
            kStrategies,
            [asked = context.pipelines_asked](const Plan& p, std::size_t) {
              return !asked && p.parallel.pipeline > 1;
            }}},
          {"pipeline",
           false,
           {"DeepSpeed's pipeline engine takes neither ZeRO 2 and 3 nor AutoTP nor Ulysses",
            kStrategies, [](const Plan& p, std::size_t) {
              return p.parallel.pipeline > 1 &&
                     (searched_zero(p).stage >= 2 || p.parallel.tensor * p.parallel.sequence > 1);
            }}}};
}

std::vector<FrameworkRule> state_rules(const RuleContext& context) {
  const auto offloads = [](const Plan& p) {
    return searched_zero(p).offload_optimizer.device != OffloadDevice::none;
  };
  return {{"precision",
           true,
           {"DeepSpeed keeps master weights beside 16-bit parameters, always", kStrategies,
            [own = context.base.precision.name](const Plan& p, std::size_t) {
              return p.precision.params != DType::f32 && !p.precision.master &&
                     p.precision.name != own;
            }}},
          {"optimizer_offload",
           false,
           {"DeepSpeed offloads the optimizer from ZeRO stage 1 on", kStrategies,
            [offloads](const Plan& p, std::size_t) {
              return offloads(p) && searched_zero(p).stage == 0;
            }}},
          {"optimizer_offload",
           false,
           {"DeepSpeed's pipeline with an optimizer on the host cannot be estimated",
            "--pipeline-degrees", [offloads](const Plan& p, std::size_t) {
              return offloads(p) && p.parallel.pipeline > 1;
            }}}};
}

/// What DeepSpeed is told of types is as in the job.
void take_own_types(Plan& plan, const DeepSpeedOptions& own) {
  DeepSpeedOptions& options = plan.framework.deepspeed;
  options.engine_dtype = own.engine_dtype;
  options.torch_autocast = own.torch_autocast;
  options.torch_autocast_dtype = own.torch_autocast_dtype;
  options.master_weights_16bit = own.master_weights_16bit;
  options.optimizer_states_16bit = own.optimizer_states_16bit;
}

}  // namespace

void deepspeed_strategies(std::vector<Strategy>& all, const Plan& base,
                          std::span<const std::int64_t> stages) {
  for (const std::int64_t stage : stages)
    all.push_back(zero_strategy(base, static_cast<int>(stage)));
}

std::vector<FrameworkRule> deepspeed_rules(const RuleContext& context) {
  std::vector<FrameworkRule> rules = degree_rules(context);
  for (FrameworkRule& rule : state_rules(context)) rules.push_back(std::move(rule));
  return rules;
}

void take_deepspeed_degree(Plan& plan, Degree degree, const Plan& base) {
  DeepSpeedOptions& options = plan.framework.deepspeed;
  if (degree == Degree::tensor) options.tensor_parallel = plan.parallel.tensor;
  if (degree != Degree::sequence) return;
  options.sequence_parallel = plan.parallel.sequence;
  const DeepSpeedOptions& own = base.framework.deepspeed;
  const bool divided = plan.parallel.sequence > 1;
  if (divided != (own.sequence_parallel > 1))
    // seq_parallel_communication_data_type has a default of its own
    options.communication_dtype = divided ? std::optional(DType::f32) : std::nullopt;
  else
    options.communication_dtype = own.communication_dtype;
}

void take_deepspeed_precision(Plan& plan, const Plan& base, bool own) {
  if (own) return take_own_types(plan, base.framework.deepspeed);
  const Precision& precision = plan.precision;
  DeepSpeedOptions& options = plan.framework.deepspeed;
  options.engine_dtype = precision.params;
  options.torch_autocast = precision.autocast();
  options.torch_autocast_dtype.reset();
  if (precision.autocast()) options.torch_autocast_dtype = precision.compute;
  options.master_weights_16bit = options.optimizer_states_16bit = false;
}

}  // namespace shardplan
