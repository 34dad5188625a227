#include "frameworks/megatron/transformer_engine.h"

#include "base/checked.h"
#include "formats/product_recipe.h"
#include "lowering/library_workspaces.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

/// get_num_cublas_streams
constexpr std::int64_t kExpertStreams = 4;

/// get_cublas_workspace_size_bytes
std::int64_t product_workspace(const Gpu& gpu) {
  return round_up(gpu.abilities.transformer_engine_workspace_bytes, kAllocationUnit);
}

/// Parameters of a stage, which has a model's whole list of them and groups of its own.
template <typename Visit>
void for_each_parameter(const Model& own, Visit&& visit) {
  for (const ParameterGroup& group : own.groups)
    for (std::int32_t i = group.first; i < group.first + group.count; ++i)
      visit(own.parameters[static_cast<std::size_t>(i)]);
}

}  // namespace

bool cuts_exchanges(const Plan& plan) {
  return plan.parallel.tensor > 1 && plan.framework.megatron.tp_comm_overlap &&
         plan.parallel.sequence_parallel;
}

std::int64_t userbuffer_bytes(const Model& model, const Plan& plan) {
  if (!cuts_exchanges(plan)) return 0;
  constexpr std::int64_t kBuffers = 12;  // forward, dgrad and wgrad of qkv, proj, fc1 and fc2
  const Sizes n = sizes_of(plan, model);
  const std::int64_t hidden_states =
      checked_mul(checked_mul(n.batch, n.sequence), model.facts.hidden);
  return checked_mul(kBuffers * size_of(plan.precision.params), hidden_states);
}

bool multiplies_itself(const Plan& plan, bool logits) {
  const bool engine = plan.framework.megatron.transformer_engine;
  return !engine || logits || plan.attention == AttentionKind::eager;
}

void add_product_workspaces(ProgramBuilder& b, const Model& own, const Plan& plan, bool logits) {
  const Gpu& gpu = plan.cluster.gpu;
  bool experts = false;
  for_each_parameter(
      own, [&](const Parameter& p) { experts = experts || p.kind == ParameterKind::expert; });
  const bool engine = plan.framework.megatron.transformer_engine;
  if (multiplies_itself(plan, logits)) add_cublas_workspaces(b, gpu);
  if (!engine) return;
  b.resident(Category::workspace, product_workspace(gpu), 1 + (experts ? kExpertStreams : 0));
}

void add_cast_weights(ProgramBuilder& b, const Model& own, const Plan& plan) {
  const ProductRecipe& recipe = recipe_of(plan.precision.linear);
  if (recipe.cast != OperandCast::kept) return;
  own.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const bool expert = p.kind == ParameterKind::expert && !p.adapter;
    if (!p.quantizable && !expert) return;
    const std::int64_t bits = checked_mul(p.numel, format_of(recipe.type).bits);
    const std::int64_t scales = recipe.block > 0 ? ceil_div(p.numel, recipe.block) : 0;
    const std::int64_t bytes =
        round_up(ceil_div(bits, 8), kAllocationUnit) + round_up(scales, kAllocationUnit);
    b.resident(Category::workspace, bytes, checked_mul(repeat, recipe.layouts));
  });
}

}  // namespace shardplan
