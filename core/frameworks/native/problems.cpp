#include "frameworks/native/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/checked.h"
#include "frameworks/native/layout.h"
#include "optimizers/description.h"
#include "parallel/degrees.h"

namespace shardplan {

std::optional<DivisionProblem> native_options_problem(const Framework& framework) {
  const NativeOptions& n = framework.native;
  const auto problem = [](std::string_view key, std::string what, std::string expected) {
    return DivisionProblem{std::string(key), std::move(what), std::move(expected)};
  };
  if (n.parameters_on_host() && n.zero_stage != 3)
    return problem("offload_param",
                   fmt::format("stage {} has all parameters on every GPU", n.zero_stage),
                   "zero_stage 3 with it, or none");
  if (n.parameters_on_host() && !n.states_on_host())
    return problem("offload_param", "parameters on the host are updated there",
                   "offload_optimizer cpu or nvme with it, or none");
  if (n.use_gds && n.offload_param != OffloadDevice::nvme)
    return problem("use_gds", "only parameters on NVMe are read by the GPU",
                   "offload_param nvme with it, or false");
  if (n.delayed_update && !n.states_on_host())
    return problem("delayed_update", "the GPU updates at once",
                   "offload_optimizer cpu or nvme with it, or false");
  return std::nullopt;
}

namespace {

std::optional<DivisionProblem> native_lora_problem(const Plan& plan) {
  const Lora& lora = *plan.workload.lora;
  const auto problem = [](std::string_view key, Said message, std::string_view expected) {
    return DivisionProblem{std::string(key), std::move(message), std::string(expected)};
  };
  if (lora.dropout != 0)
    return problem("workload.lora.dropout", "the native engine has no dropout, of adapters neither",
                   "0");
  if (lora.magnitudes)
    return problem("workload.lora.dora", "the native engine has no DoRA", "false");
  if (lora.rotation_block != 0)
    return problem("workload.lora.oft_block_size", "the native engine has no OFT", "0");
  if (!lora.saved.empty())
    return problem("workload.lora.modules_to_save",
                   "the native engine has no copies of modules that train", "no such list");
  if (!lora.whole.empty())
    return problem("workload.lora.train_whole",
                   "the native engine has no modules that train as they are beside adapters",
                   "no such list");
  if (lora.prepare_kbit.value_or(false))
    return problem("workload.lora.prepare_kbit",
                   "the native engine has no parameters of another type than the adapters",
                   "false");
  if (lora.base != Quantization::none && lora.base != Quantization::nf4 &&
      lora.base != Quantization::nf4_double)
    return problem("workload.lora.quantization",
                   fmt::format("the native engine has no base in {}", name_of(lora.base)),
                   "none, nf4 or nf4_double");
  return std::nullopt;
}

}  // namespace

namespace {

/// Products in 8 bits, and what they do not go with.
std::optional<DivisionProblem> native_recipe_problem(const Plan& plan) {
  const Precision& p = plan.precision;
  if (p.linear == LinearRecipe::computed) return std::nullopt;
  if (recipe_of(p.linear).cast != OperandCast::eager)
    return DivisionProblem{
        "precision.linear",
        fmt::format("the native engine has no products in {}", recipe_of(p.linear).words),
        "bf16, fp8-tensorwise or fp8-rowwise"};
  if (size_of(p.params) != 2)
    return DivisionProblem{"precision.linear",
                           fmt::format("the native engine has products in fp8 beside 16 bits, not "
                                       "beside {}",
                                       name_of(p.params)),
                           "bf16-pure, bf16-master or fp16-master with it"};
  if (recipe_of(p.linear).by_rows && plan.framework.native.device == NativeDevice::cuda &&
      plan.cluster.gpu.compute_capability != "9.0")
    return DivisionProblem{
        "precision.linear",
        fmt::format("cuBLASLt has scales of rows at compute capability 9.0, {} has {}",
                    plan.cluster.gpu.name, plan.cluster.gpu.compute_capability),
        "fp8-tensorwise"};
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> native_plan_problem(const Plan& plan) {
  const Precision& p = plan.precision;
  if (auto problem = native_recipe_problem(plan)) return problem;
  if (p.autocast())
    return DivisionProblem{"precision",
                           fmt::format("the native engine has no autocast ({})", p.name),
                           "fp32, bf16-pure, bf16-master or fp16-master"};
  if (p.params == DType::f16 && !p.master)
    return DivisionProblem{"precision", "the native engine has no fp16 without fp32 master weights",
                           "fp16-master"};
  if (p.master && *p.master != DType::f32)
    return DivisionProblem{"precision.master", "the native engine has no masters but fp32", "fp32"};
  if (p.optimizer_states != DType::f32 &&
      (p.optimizer_states != DType::bf16 || p.params != DType::bf16 || p.master))
    return DivisionProblem{"precision.optimizer_states", "the native engine has no such states",
                           "fp32, or bf16 with bf16 parameters and no master"};
  if (p.reduce && *p.reduce != p.gradients)
    return DivisionProblem{"precision.reduce",
                           "the native engine has no reduction in another type than the gradients'",
                           std::string(name_of(p.gradients))};
  if (!plan.optimizer.kind->native || plan.optimizer.amsgrad)
    return DivisionProblem{"optimizer", "the native engine has no optimizer but AdamW", "adamw"};
  if (plan.parallel.tensor > 1 && !plan.parallel.sequence_parallel)
    return DivisionProblem{
        "parallel.sequence_parallel",
        "the native engine has no tensor-parallel ranks that all keep the same tokens", "true"};
  if (plan.parallel.expert_imbalance != 1)
    return DivisionProblem{
        "parallel.expert_imbalance",
        "the native engine's experts have room by framework.capacity_factor, whatever is sent",
        "1"};
  if (plan.workload.lora)
    if (auto problem = native_lora_problem(plan)) return problem;
  if (plan.attention == AttentionKind::eager)
    return DivisionProblem{"attention", "the native engine has no eager attention", "sdpa"};
  return std::nullopt;
}

namespace {

/// The largest degree below `degree` that divides all of `wholes`.
std::int64_t degree_below(std::int64_t degree, std::initializer_list<std::int64_t> wholes) {
  const auto divides = [&](std::int64_t d) {
    return std::all_of(wholes.begin(), wholes.end(), [d](std::int64_t w) { return w % d == 0; });
  };
  do --degree;
  while (degree > 1 && !divides(degree));
  return degree;
}

/// What does not go together with layers of experts, or with dividing them.
std::optional<DivisionProblem> experts_problem(const Model& model, const Plan& plan) {
  const Parallel& p = plan.parallel;
  const NativeOptions& options = plan.framework.native;
  if (expert_count(model) == 0) {
    if (options.idle_experts > 0)
      return DivisionProblem{"framework.idle_experts", "a dense model has no experts", "0"};
    if (options.capacity_factor == 0) return std::nullopt;
    return DivisionProblem{"framework.capacity_factor", "a dense model has no experts", "0"};
  }
  if (options.idle_experts >= static_cast<double>(expert_count(model)))
    return DivisionProblem{"framework.idle_experts", "no expert is left to work",
                           "fewer than the model's experts"};
  if (options.idle_experts > 0 && (options.capacity_factor > 0 || p.expert > 1))
    return DivisionProblem{"framework.idle_experts",
                           "with a capacity every expert computes with all of its slots", "0"};
  // The usual layout (Megatron-LM's with expert tensor parallel 1, torchtitan's): attention is
  // divided, and an expert is whole on the ranks that have it.
  if (p.tensor > 1 && p.expert == 1 && p.pipeline > 1)
    return DivisionProblem{"parallel.expert",
                           fmt::format("beside a pipeline the native engine has the experts of a "
                                       "layer divided where {} ranks share its attention",
                                       p.tensor),
                           fmt::format("{}, or another degree above 1", p.tensor)};
  return std::nullopt;
}

/// Networks and layers that the engine has no adapters for.
std::optional<DivisionProblem> native_adapters_problem(const Model& model) {
  const auto adapted = [&](const Parameter& p) { return p.adapter; };
  if (std::none_of(model.parameters.begin(), model.parameters.end(), adapted)) return std::nullopt;
  if (model.facts.model_type == "mlp")
    return DivisionProblem{"workload.method", "the native engine has no LoRA with an mlp", "full"};
  for (const Parameter& p : model.parameters) {
    if (p.adapter && p.name.find("{}") == std::string::npos)
      return DivisionProblem{
          "workload.lora.targets",
          fmt::format("{}: the native engine adapts the linear layers of blocks alone", p.name),
          "all-linear, or some of them"};
  }
  return std::nullopt;
}

}  // namespace

namespace {

/// Networks and sizes that the engine has no products in 8 bits for.
std::optional<DivisionProblem> recipe_sides_problem(const Model& model, const Plan& plan) {
  const ProductRecipe& recipe = recipe_of(plan.precision.linear);
  if (recipe.cast == OperandCast::none) return std::nullopt;
  const auto problem = [](Said message, std::string_view expected) {
    return DivisionProblem{"precision.linear", std::move(message), std::string(expected)};
  };
  const NativeLayout layout = native_layout(model, Parallel{});
  if (!layout.decoder) return problem("the native engine has no products in fp8 of an mlp", "bf16");
  const NativeBlock& b = layout.block;
  const std::int64_t tensor = plan.parallel.tensor;
  /// A rank's part of a side; one that the ranks do not divide is refused for that.
  const auto part = [&](std::int64_t whole) {
    return whole % tensor == 0 ? whole / tensor : whole;
  };
  /// An expert's are whole.
  const auto inner = [&](std::int64_t whole) { return b.experts == 0 ? part(whole) : whole; };
  for (const std::int64_t side :
       {b.hidden, part(b.packed), part(b.query_width), inner(b.up), inner(b.inner)})
    if (side % recipe.multiple != 0)
      return problem(fmt::format("{} does not divide the {} rows or columns of a matrix, as "
                                 "cuBLASLt wants",
                                 recipe.multiple, side),
                     tensor > 1 ? "bf16, or another parallel.tensor" : "bf16");
  const Workload& w = plan.workload;
  const std::int64_t rows = checked_mul(w.micro_batch, w.sequence_length / plan.parallel.context);
  if (rows % recipe.multiple != 0)
    return problem(fmt::format("{} does not divide the {} tokens that a rank has of a "
                               "micro-batch, as cuBLASLt wants",
                               recipe.multiple, rows),
                   "another micro_batch or sequence_length");
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> native_sharding_problem(const Model& model, const Plan& plan) {
  if (auto problem = recipe_sides_problem(model, plan)) return problem;
  if (auto problem = native_adapters_problem(model)) return problem;
  if (auto problem = experts_problem(model, plan)) return problem;
  if (plan.checkpoint_share.offload && model.facts.model_type == "mlp")
    return DivisionProblem{"checkpointing.offload",
                           "the native engine keeps all layers of an mlp on the GPU", "false"};
  const std::int64_t tensor = plan.parallel.tensor, context = plan.parallel.context;
  if (tensor == 1 && context == 1) return std::nullopt;
  const NativeLayout layout = native_layout(model, Parallel{});
  if (context > 1 && !layout.decoder)
    return DivisionProblem{"parallel.context", "an mlp's samples are no sequences", "1"};
  if (tensor == 1) return std::nullopt;
  const auto problem = [](Said message, std::int64_t degree) {
    return DivisionProblem{"parallel.tensor", std::move(message), fmt::format("{}", degree)};
  };
  if (!layout.decoder) return problem("the native engine does not divide the layers of an mlp", 1);
  const NativeBlock& b = layout.block;
  const std::int64_t rows =
      checked_mul(plan.workload.micro_batch, plan.workload.sequence_length / context);
  const std::int64_t inner = b.experts == 0 ? b.inner : 0;  // an expert is whole
  const std::int64_t degree = degree_below(
      tensor, {b.query_heads, b.key_value_heads, inner, b.hidden, rows, plan.cluster.world()});
  const auto not_divided = [&](std::int64_t whole, std::string_view what) {
    return problem(say("{} does not divide the {} {}", tensor, whole, what), degree);
  };
  if (b.query_heads % tensor != 0) return not_divided(b.query_heads, "attention heads");
  if (b.key_value_heads % tensor != 0) return not_divided(b.key_value_heads, "key-value heads");
  if (inner % tensor != 0) return not_divided(inner, "inner dimensions of the MLP");
  if (rows % tensor != 0) return not_divided(rows, "tokens that a rank has of a micro-batch");
  return std::nullopt;
}

std::optional<DivisionProblem> native_pipeline_problem(const Plan& plan) {
  const NativeOptions& n = plan.framework.native;
  if (n.zero_stage > 1)
    return DivisionProblem{
        "framework.zero_stage",
        fmt::format("stage {} would reduce every micro-batch's gradients; beside a pipeline the "
                    "native engine has stages 0 and 1",
                    n.zero_stage),
        "1, or parallel.pipeline 1"};
  if (n.states_on_host())
    return DivisionProblem{"framework.offload_optimizer",
                           "the native engine has no states on the host beside a pipeline",
                           "none, or parallel.pipeline 1"};
  if (plan.checkpoint_share.offload)
    return DivisionProblem{"checkpointing.offload",
                           "the native engine has nothing of blocks on the host beside a pipeline",
                           "false, or parallel.pipeline 1"};
  if (!plan.parallel.stage_layers.empty())
    return DivisionProblem{"parallel.stage_layers",
                           "the native engine gives every chunk as many blocks", "no such list"};
  if (plan.parallel.balance != StageBalance::blocks)
    return DivisionProblem{"parallel.balance", "the native engine gives every chunk as many blocks",
                           "blocks"};
  return std::nullopt;
}

std::optional<DivisionProblem> native_checkpoint_problem(const Plan& plan) {
  const std::string_view name = name_of(plan.checkpointing);
  const auto problem = [](std::string reason) {
    return DivisionProblem{"checkpointing.policy", std::move(reason), "none, selective or full"};
  };
  if (plan.checkpointing != Checkpointing::blocks) return std::nullopt;
  if (plan.parallel.virtual_pipeline > 1)
    return problem(fmt::format(
        "{}: the native engine's chunks of a stage take turns in the same memory", name));
  if (plan.checkpoint_share.offload)
    return problem(fmt::format("{}: the native engine sends as much of all blocks", name));
  return std::nullopt;
}

}  // namespace shardplan
