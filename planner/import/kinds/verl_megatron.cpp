// verl's workers under Megatron-LM (0.8: verl/trainer/config/engine/megatron.yaml,
// verl/utils/megatron_utils.py, get_model).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "import/kinds/verl_config.h"
#include "import/kinds/verl_degrees.h"
#include "import/known_layers.h"

namespace shardplan::importing::verl {
namespace {

constexpr std::string_view kMegatronActor = "actor_rollout_ref.actor.";
constexpr std::string_view kMegatronReference = "actor_rollout_ref.ref.";

std::string below(std::string_view group, std::string_view key) {
  return fmt::format("{}megatron.{}", group, key);
}
std::string override_of(std::string_view key) {
  return below(kMegatronActor, fmt::format("override_transformer_config.{}", key));
}

/// What the worker says; of a reference else what the actor says.
std::int64_t degree(const Config& c, std::string_view group, std::string_view key) {
  const std::int64_t actors =
      group == kMegatronReference ? c.integer(below(kMegatronActor, key), 1) : 1;
  return c.integer(below(group, key), actors);
}

/// Ends with other numbers of layers than the stages between them.
Json uneven_stages(const Config& c, std::int64_t stages) {
  const std::int64_t first = c.integer(override_of("num_layers_in_first_pipeline_stage"), 0);
  const std::int64_t last = c.integer(override_of("num_layers_in_last_pipeline_stage"), 0);
  if (stages == 1 || (first == 0 && last == 0)) return {};
  const std::string key = override_of(first > 0 ? "num_layers_in_first_pipeline_stage"
                                                : "num_layers_in_last_pipeline_stage");
  const std::int64_t layers = known_layers(c.recipe(), c.document());
  if (layers == 0)
    c.refuse(key, "the model's layers are not known", "a model of the catalogue, or --model");
  const std::int64_t between = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t rest = layers - first - last;
  if (rest < 0 || (between == 0 ? rest > 0 : rest % between != 0))
    c.refuse(key, fmt::format("{} layers are left for {} stages", rest, between),
             "numbers that leave equal parts");
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(stages),
                                   between > 0 ? rest / between : 0);
  if (first > 0) blocks.front() = first;
  if (last > 0) blocks.back() = last;
  return blocks;
}

/// Whether an embedding and a head count as a layer each of their stages.
bool takes_ends(const Config& c) {
  const std::string embedding = override_of("account_for_embedding_in_pipeline_split");
  const std::string loss = override_of("account_for_loss_in_pipeline_split");
  const bool both = c.flag(embedding, false) && c.flag(loss, false);
  if (!both && (c.flag(embedding, false) || c.flag(loss, false)))
    c.refuse(c.flag(embedding, false) ? embedding : loss,
             "one end alone as a layer of its stage is not estimated", "both, or neither");
  return both;
}

}  // namespace

Json megatron_framework(const Config& c, std::string_view group) {
  Json framework{{"name", "megatron"}, {"overlap_grad_reduce", false}};
  framework["overlap_param_gather"] = false;
  framework["distributed_optimizer"] = c.flag(below(group, "use_distributed_optimizer"), true);
  return framework;
}

Json megatron_degrees(const Config& c, std::string_view group) {
  Json degrees = Json::object();
  for (const auto& [name, key] : kMegatronDegrees)
    if (const std::int64_t value = degree(c, group, key); value > 1) degrees[name] = value;
  if (const std::int64_t each = degree(c, group, "expert_tensor_parallel_size");
      each != 1 || c.said(below(group, "expert_tensor_parallel_size")) != nullptr)
    if (degrees.contains("expert")) degrees["expert_tensor"] = each;
  if (degrees.contains("tensor"))
    degrees["sequence_parallel"] = c.flag(below(group, "sequence_parallel"), true);
  if (takes_ends(c)) degrees["balance"] = "blocks_and_ends";
  const Json blocks = uneven_stages(c, degrees.value("pipeline", std::int64_t{1}));
  if (!blocks.is_null()) degrees["stage_layers"] = blocks;
  if (group == kMegatronActor || degrees == megatron_degrees(c, kMegatronActor)) return degrees;
  // A worker's own degrees stand beside the job's: what it does not divide, it says.
  for (const auto& [name, key] : kMegatronDegrees)
    if (!degrees.contains(name)) degrees[name] = 1;
  if (!degrees.contains("sequence_parallel")) degrees["sequence_parallel"] = false;
  return degrees;
}

Json megatron_checkpointing(const Config& c) {
  const std::string how = c.text(override_of("recompute_granularity"), "none");
  if (how == "none") return "none";
  if (how == "selective") return "selective";
  const std::int64_t layers = c.integer(override_of("recompute_num_layers"), 1);
  if (c.text(override_of("recompute_method"), "uniform") == "block")
    return Json{{"policy", "blocks"}, {"count", layers}};
  if (layers > 1)
    c.refuse(override_of("recompute_num_layers"),
             fmt::format("{} layers in each uniform part are not estimated", layers), "1");
  return "full";
}

}  // namespace shardplan::importing::verl
