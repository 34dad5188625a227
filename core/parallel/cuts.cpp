#include "parallel/cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace shardplan {
namespace {

struct Rule {
  std::string_view module;  ///< the end of its name
  Cut cut;
};

// transformers 5.17: base_model_tp_plan of models/*/configuration_*.py.
constexpr std::array kAttention{
    Rule{"self_attn.q_proj", Cut::column}, Rule{"self_attn.k_proj", Cut::column},
    Rule{"self_attn.v_proj", Cut::column}, Rule{"self_attn.o_proj", Cut::row}};
constexpr std::array kHeadNorms{Rule{"self_attn.q_norm", Cut::summed},
                                Rule{"self_attn.k_norm", Cut::summed}};
constexpr std::array kGatheredAttention{
    Rule{"self_attn.q_proj", Cut::column_gathered}, Rule{"self_attn.k_proj", Cut::column_gathered},
    Rule{"self_attn.v_proj", Cut::column_gathered}, Rule{"self_attn.o_proj", Cut::row_sliced}};
constexpr std::array kMlp{Rule{".mlp.gate_proj", Cut::column}, Rule{".mlp.up_proj", Cut::column},
                          Rule{".mlp.down_proj", Cut::row}};
constexpr std::array kFusedMlp{Rule{".mlp.gate_up_proj", Cut::column_gathered},
                               Rule{".mlp.down_proj", Cut::row_sliced}};
constexpr std::array kExperts{Rule{".experts.gate_up_proj", Cut::column},
                              Rule{".experts.down_proj", Cut::row}};
constexpr std::array kSharedExperts{Rule{".shared_experts.gate_proj", Cut::column},
                                    Rule{".shared_experts.up_proj", Cut::column},
                                    Rule{".shared_experts.down_proj", Cut::row}};
constexpr std::array kLatent{
    Rule{"self_attn.q_proj", Cut::column}, Rule{"self_attn.q_b_proj", Cut::column},
    Rule{"self_attn.kv_b_proj", Cut::column}, Rule{"self_attn.o_proj", Cut::row}};
constexpr std::array kPhi{
    Rule{"self_attn.q_proj", Cut::column}, Rule{"self_attn.k_proj", Cut::column},
    Rule{"self_attn.v_proj", Cut::column}, Rule{"self_attn.dense", Cut::row},
    Rule{"mlp.fc1", Cut::column},          Rule{"mlp.fc2", Cut::row}};
constexpr std::array kPhi3{Rule{"self_attn.qkv_proj", Cut::column_gathered},
                           Rule{"self_attn.o_proj", Cut::row_sliced}};
constexpr std::array kStarcoder{Rule{"mlp.c_fc", Cut::column}, Rule{"mlp.c_proj", Cut::row}};
constexpr std::array kNeox{
    Rule{"attention.query_key_value", Cut::column}, Rule{"attention.dense", Cut::row},
    Rule{"mlp.dense_h_to_4h", Cut::column}, Rule{"mlp.dense_4h_to_h", Cut::row}};

struct Rules {
  const Rule* first = nullptr;
  std::size_t count = 0;
  constexpr Rules() = default;
  template <std::size_t N>
  constexpr Rules(const std::array<Rule, N>& rules)  // NOLINT: a list is its rules
      : first(rules.data()), count(N) {}
};

struct PublishedPlan {
  std::string_view model_type;
  std::array<Rules, 5> rules;
};
constexpr std::array kPlans{
    PublishedPlan{"llama", {kAttention, kMlp}},
    PublishedPlan{"mistral", {kAttention, kMlp}},
    PublishedPlan{"qwen2", {kAttention, kMlp}},
    PublishedPlan{"gemma", {kAttention, kMlp}},
    PublishedPlan{"gemma2", {kAttention, kMlp}},
    PublishedPlan{"cohere", {kAttention, kMlp}},
    PublishedPlan{"cohere2", {kAttention, kMlp}},
    PublishedPlan{"cwm", {kAttention, kMlp}},
    PublishedPlan{"ernie4_5", {kAttention, kMlp}},
    PublishedPlan{"granite", {kAttention, kMlp}},
    PublishedPlan{"hyperclovax", {kAttention, kMlp}},
    PublishedPlan{"ministral", {kAttention, kMlp}},
    PublishedPlan{"seed_oss", {kAttention, kMlp}},
    PublishedPlan{"smollm3", {kAttention, kMlp}},
    PublishedPlan{"arcee", {kAttention, kMlp}},  // without a gate, as the next
    PublishedPlan{"jais2", {kAttention, kMlp}},
    PublishedPlan{"apertus", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"exaone4", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"gemma4_unified_text", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"qwen3", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"gemma3_text", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"gemma4_text", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"mixtral", {kAttention, kExperts}},
    PublishedPlan{"qwen2_moe", {kAttention, kMlp}},
    PublishedPlan{"qwen2_vl_text", {kAttention, kMlp}},
    PublishedPlan{"qwen2_5_vl_text", {kAttention, kMlp}},
    PublishedPlan{"ministral3", {kAttention, kMlp}},
    // NeMo Automodel 0.5 leaves delta nets whole (optimized_tp_plans.py, _parallelize_qwen3_5_vlm).
    PublishedPlan{"qwen3_5_text", {kAttention, kHeadNorms, kMlp}},
    PublishedPlan{"qwen3_moe", {kAttention, kHeadNorms, kExperts, kMlp}},
    PublishedPlan{"phi", {kPhi}},
    PublishedPlan{"phi3", {kPhi3, kFusedMlp}},
    PublishedPlan{"starcoder2", {kAttention, kStarcoder}},
    PublishedPlan{"olmo", {kAttention, kMlp}},
    PublishedPlan{"olmo2", {kGatheredAttention, kMlp}},
    PublishedPlan{"olmo3", {kGatheredAttention, kMlp}},
    PublishedPlan{"glm4", {kAttention, kFusedMlp}},
    PublishedPlan{"gpt_neox", {kNeox}},
    PublishedPlan{"deepseek_v2", {kLatent, kExperts, kSharedExperts, kMlp}},
    PublishedPlan{"deepseek_v3", {kExperts, kSharedExperts, kMlp}},
    PublishedPlan{"ernie4_5_moe", {kAttention, kExperts, kSharedExperts, kMlp}},
};

/// Types whose plan has what is not described here.
constexpr std::array<std::string_view, 11> kNotDescribed{
    "deepseek_v32", "dots1",       "gemma3n_text", "glm",   "glm4_moe",  "glm4_moe_lite",
    "glm_moe_dsa",  "llama4_text", "minimax_m2",   "olmoe", "qwen3_next"};

/// Of networks with experts that an engine divides and transformers has no plan of: the same
/// modules by their usual names, with one sum over the ranks behind attention and one behind the
/// experts (vllm/model_executor/layers/fused_moe/layer.py, reduce_results).
constexpr PublishedPlan kEnginesExperts{"",
                                        {kAttention, kHeadNorms, kExperts, kSharedExperts, kMlp}};

/// What DeepSpeed takes of a published plan (module_inject/tp_plan_converter.py): a plan with
/// anything else is rejected as a whole.
bool deepspeed_takes(const PublishedPlan& plan) {
  for (const Rules& rules : plan.rules)
    for (std::size_t i = 0; i < rules.count; ++i)
      if (rules.first[i].cut == Cut::row_sliced ||
          rules.first[i].module.find("experts") != std::string_view::npos)
        return false;
  return true;
}

/// Families that DeepSpeed's own parser divides by what follows what (module_inject/auto_tp.py).
constexpr std::array<std::string_view, 5> kParsed{"opt", "bloom", "falcon", "gptj", "stablelm"};

template <typename Test>
std::string families(Test&& test) {
  std::string names;
  for (const PublishedPlan& plan : kPlans)
    if (test(plan)) names += (names.empty() ? "" : ", ") + std::string(plan.model_type);
  return names;
}

bool has_experts(const Model& model) {
  return std::ranges::any_of(model.parameters,
                             [](const Parameter& p) { return p.kind == ParameterKind::expert; });
}

constexpr auto kOfEngines = static_cast<std::ptrdiff_t>(kPlans.size());

/// Which plan cuts modules by their names; -1: none does.
std::ptrdiff_t plan_of(const Model& model, const Plan& plan) {
  const auto* found = std::ranges::find(kPlans, model.facts.text_type, &PublishedPlan::model_type);
  if (found != kPlans.end()) return found - kPlans.begin();
  return plan.workload.generation.engine && has_experts(model) ? kOfEngines : -1;
}

const PublishedPlan& plan_at(std::ptrdiff_t index) {
  return index == kOfEngines ? kEnginesExperts : kPlans[static_cast<std::size_t>(index)];
}

/// The module that a tensor is of, or that its adapter is beside.
std::string_view adapted_module(std::string_view tensor) {
  for (const std::string_view end : {".weight", ".bias"})
    if (tensor.ends_with(end)) tensor.remove_suffix(end.size());
  for (const std::string_view end : {".base_layer", ".lora_A", ".lora_B"})
    if (tensor.ends_with(end)) tensor.remove_suffix(end.size());
  return tensor;
}

bool ends_with_one_of(std::string_view module, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return module.ends_with(end); });
}

}  // namespace

PlanState plan_state(std::string_view text_type) {
  if (std::ranges::find(kPlans, text_type, &PublishedPlan::model_type) != kPlans.end())
    return PlanState::described;
  return std::ranges::find(kNotDescribed, text_type) != kNotDescribed.end() ? PlanState::published
                                                                            : PlanState::none;
}

bool has_plan_by_name(const Model& model, const Plan& plan) {
  return plan_of(model, plan) >= 0;
}

bool is_router(std::string_view tensor) {
  return ends_with_one_of(adapted_module(tensor), {"mlp.gate", "router", "shared_expert_gate"});
}

bool is_key_or_value(std::string_view tensor) {
  return tensor.find("k_proj") != std::string_view::npos ||
         tensor.find("v_proj") != std::string_view::npos;
}

bool is_packed_attention(std::string_view tensor) {
  return tensor.find("qkv") != std::string_view::npos ||
         tensor.find("query_key_value") != std::string_view::npos ||
         tensor.find("c_attn") != std::string_view::npos;
}

Cuts::Cuts(const Model& model, const Plan& plan, SplitStyle style)
    : model_(model),
      style_(style),
      by_tokens_(style == SplitStyle::transformers && plan.parallel.sequence_parallel),
      parts_of_experts_(plan.parallel.expert_tensor > 1) {
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::linear && op.weight != kNone &&
          model.parameters[static_cast<std::size_t>(op.weight)].kind == ParameterKind::embedding)
        tied_head_ = true;
  if (style == SplitStyle::megatron) return;
  const std::string& type = model.facts.text_type;
  only_experts_ = style == SplitStyle::transformers && plan.parallel.expert > 1;
  if (only_experts_) {
    if (plan.parallel.expert != plan.parallel.tensor)
      throw InputError(
          {.key = "parallel.expert",
           .message = fmt::format("transformers divides experts over its tensor-parallel "
                                  "ranks, of which there are {}",
                                  plan.parallel.tensor),
           .expected =
               plan.parallel.tensor == 1 ? "1" : fmt::format("1 or {}", plan.parallel.tensor)});
    return;
  }
  plan_ = plan_of(model, plan);
  const auto refuse = [&](std::string message, std::string expected) {
    throw InputError(
        {.key = "parallel.tensor", .message = std::move(message), .expected = std::move(expected)});
  };
  if (plan_ < 0) {
    if (style == SplitStyle::autotp &&
        std::find(kParsed.begin(), kParsed.end(), type) != kParsed.end())
      return;
    if (plan_state(type) == PlanState::published)
      refuse(fmt::format("the tensor-parallel plan of {} in transformers is not described", type),
             "1, or a model of one of " + families([](const PublishedPlan&) { return true; }));
    refuse(fmt::format("{} has no tensor-parallel plan in transformers", type),
           "1, or a model of one of " + families([](const PublishedPlan&) { return true; }));
  }
  if (style == SplitStyle::autotp && !deepspeed_takes(plan_at(plan_)))
    refuse(fmt::format("DeepSpeed rejects the tensor-parallel plan of {}", type),
           "1, or a model of one of " + families(deepspeed_takes));
}

Cut Cuts::of(ParameterId id) const {
  if (id == kNone) return Cut::whole;
  const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
  if (only_experts_) return p.kind == ParameterKind::expert ? Cut::number : Cut::whole;
  return plan_ >= 0 ? by_plan(p) : by_flow(p);
}

Cut Cuts::by_plan(const Parameter& p) const {
  const std::string_view module = adapted_module(p.name);
  // torchtitan's plan divides tokens: the embedding's result too, and the loss is over parts.
  if (module == "lm_head") return by_tokens_ ? Cut::column : Cut::column_gathered;
  if (p.kind == ParameterKind::embedding && by_tokens_)
    return p.shape.front() == model_.facts.vocabulary ? Cut::vocabulary : Cut::whole;
  // A table that is the head too is cut as the head is; DeepSpeed leaves it whole.
  if (p.kind == ParameterKind::embedding && tied_head_ && style_ == SplitStyle::transformers)
    return p.shape.front() == model_.facts.vocabulary ? Cut::vocabulary : Cut::whole;
  for (const Rules& rules : plan_at(plan_).rules)
    for (std::size_t i = 0; i < rules.count; ++i)
      if (module.ends_with(rules.first[i].module)) return rules.first[i].cut;
  return Cut::whole;
}

Cut Cuts::by_flow(const Parameter& p) const {
  const std::string_view module = adapted_module(p.name);
  // eh_proj's result is gathered by whoever divides it: whole, it takes a little more.
  const bool goes_down =
      ends_with_one_of(module, {"q_a_proj", "kv_a_proj_with_mqa", "mtp.layers.{}.eh_proj"});
  if (is_router(p.name) || goes_down) return Cut::whole;  // goes_down: to MLA's latent rows
  const bool megatron = style_ == SplitStyle::megatron;
  // A number or a row for each head or channel of a delta net (megatron/core/ssm/gated_delta_net).
  if (megatron &&
      ends_with_one_of(module, {"linear_attn.conv1d", "linear_attn.dt_bias", "linear_attn.A_log"}))
    return Cut::column;
  // A critic's value for each token has no columns to divide: its head is on every rank
  // (verl 0.8, models/mcore/bridge.py, LinearForLastLayer: "replicated").
  if (p.shape.size() == 2 && p.shape.front() == 1) return Cut::whole;
  if (p.kind == ParameterKind::embedding)
    return megatron && !p.shape.empty() && p.shape.front() == model_.facts.vocabulary
               ? Cut::vocabulary
               : Cut::whole;
  if (p.kind == ParameterKind::expert) return parts_of_experts_ ? Cut::flow : Cut::whole;
  if (!megatron && module == "lm_head") return Cut::whole;
  return p.shape.size() > 1 ? Cut::flow : Cut::whole;
}

}  // namespace shardplan
