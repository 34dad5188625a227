// nemo_rl/models/automodel/setup.py (DTensor with `_v2`: NeMo Automodel's FSDP2),
// nemo_rl/models/dtensor/parallelize.py (without), nemo_rl/models/megatron/setup.py.
#include "import/kinds/nemo_rl_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "import/known_layers.h"
#include "import/vocabulary.h"

namespace shardplan::importing::nemo_rl {
namespace {

std::string dtensor(std::string_view key) {
  return fmt::format("policy.dtensor_cfg.{}", key);
}
std::string megatron(std::string_view key) {
  return fmt::format("policy.megatron_cfg.{}", key);
}

class Workers {
 public:
  explicit Workers(const HydraConfig& config) : c_(config), recipe_(config.recipe()) {}

  void take() {
    recipe_.set("/gradient_clipping", c_.number("policy.max_grad_norm", 1.0),
                c_.origin("policy.max_grad_norm"));
    if (under_megatron(c_)) return take_megatron();
    if (!c_.flag(dtensor("enabled"), false))
      c_.refuse(dtensor("enabled"), "neither of NeMo RL's trainers is on",
                "dtensor_cfg.enabled: true or megatron_cfg.enabled: true");
    recipe_.set("/trainer", "nemo_rl", c_.origin(dtensor("enabled")));
    take_shards();
  }

 private:
  /// 16 bits in computing, fp32 in shards and in reducing.
  std::string computing() const {
    const std::string type = dtype_word(c_.text("policy.precision", "bfloat16"));
    if (type.empty())
      c_.refuse("policy.precision",
                fmt::format("'{}' is no type of NeMo RL's", c_.text("policy.precision", "")),
                "bfloat16, float16 or float32");
    return type;
  }

  /// Each micro-batch reduces its gradients: nobody in NeMo RL's loop tells FSDP2 to wait, whatever
  /// defer_fsdp_grad_sync says (automodel/train.py).
  void take_shards() {
    const std::int64_t experts = c_.integer(dtensor("expert_parallel_size"), 1);
    Json framework{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}};
    if (experts > 1)
      framework["reshard_after_forward"] =
          c_.flag(dtensor("moe_parallelizer.reshard_after_forward"), false);
    if (experts > 1 && c_.text(dtensor("automodel_kwargs.backend.dispatcher"), "") == "torch")
      framework["expert_dispatch"] = "allgather";
    if (c_.flag(dtensor("cpu_offload"), false)) framework["cpu_offload"] = true;
    take_copies(framework);
    recipe_.set("/framework", framework, c_.origin(dtensor("enabled")));
    degree("tensor", dtensor("tensor_parallel_size"));
    degree("context", dtensor("context_parallel_size"));
    degree("expert", dtensor("expert_parallel_size"));
    if (c_.integer(dtensor("tensor_parallel_size"), 1) > 1)
      recipe_.set("/parallel/sequence_parallel", c_.flag(dtensor("sequence_parallel"), false),
                  c_.origin(dtensor("sequence_parallel")));
    const std::string type = computing();
    recipe_.set("/precision", type == "fp32" ? "fp32" : type + "-autocast",
                c_.origin("policy.precision"));
    take_torch_optimizer();
    take_wrapped_parts();
  }

  void degree(const char* name, const std::string& key) {
    if (const std::int64_t value = c_.integer(key, 1); value > 1)
      recipe_.set(fmt::format("/parallel/{}", name), value, c_.origin(key));
  }

  /// HSDP: each of the copies is divided over the GPUs of one group.
  void take_copies(Json& framework) {
    const std::int64_t copies = c_.integer(dtensor("dp_replicate_size"), 1);
    if (copies <= 1) return;
    const std::int64_t gpus =
        recipe_.machines.value_or(1) * recipe_.per_machine.value_or(1) /
        std::max<std::int64_t>(1, c_.integer(dtensor("tensor_parallel_size"), 1) *
                                      c_.integer(dtensor("context_parallel_size"), 1));
    if (gpus % copies != 0)
      c_.refuse(dtensor("dp_replicate_size"),
                fmt::format("{} GPUs of data parallelism are no multiple of {}", gpus, copies),
                "a divisor of them");
    framework["hybrid_shard_size"] = gpus / copies;
  }

  void take_torch_optimizer() {
    const std::string name = c_.text("policy.optimizer.name", "torch.optim.AdamW");
    const std::string last = name.substr(name.rfind('.') + 1);
    if (last != "AdamW" && last != "Adam" && last != "FusedAdam")
      c_.refuse("policy.optimizer.name", fmt::format("the optimizer '{}' is not estimated", name),
                "torch.optim.AdamW");
    const bool fused = last == "FusedAdam" || c_.flag("policy.optimizer.kwargs.fused", false);
    const bool foreach = c_.flag("policy.optimizer.kwargs.foreach", true);
    recipe_.set("/optimizer",
                Json{{"name", last == "Adam" ? "adam" : "adamw"},
                     {"implementation", fused     ? "fused"
                                        : foreach ? "foreach"
                                                  : "for_loop"}},
                c_.origin("policy.optimizer.name"));
  }

  /// Attention, feed-forward and norms of a block are wrapped one by one.
  void take_wrapped_parts() {
    const std::string key = dtensor("activation_checkpointing");
    const bool recomputes = c_.flag(key, false);
    recipe_.set("/checkpointing", recomputes ? "full" : "none", c_.origin(key));
    if (recomputes)
      recipe_.note({.kind = Note::Kind::warning,
                    .file = c_.document().file,
                    .key = key,
                    .reason = "NeMo RL wraps a block's parts one by one, which keeps up to three "
                              "more inputs of each block than are estimated"});
  }

  void take_megatron() {
    const std::string updates = megatron("optimizer.use_distributed_optimizer");
    const auto overlaps = [&](std::string_view key) {
      return c_.flag(megatron(fmt::format("distributed_data_parallel_config.{}", key)), true);
    };
    const bool divided = c_.flag(updates, true);
    Json framework{{"name", "megatron"},
                   {"distributed_optimizer", divided},
                   {"overlap_grad_reduce", overlaps("overlap_grad_reduce")}};
    framework["overlap_param_gather"] =
        divided && overlaps("overlap_grad_reduce") && overlaps("overlap_param_gather");
    const std::string type = computing();
    const std::string wide = megatron("distributed_data_parallel_config.grad_reduce_in_fp32");
    framework["grad_reduce_dtype"] = c_.flag(wide, false) ? "fp32" : type;
    recipe_.set("/framework", framework, c_.origin(megatron("enabled")));
    recipe_.set("/precision", type == "fp32" ? type : type + "-master",
                c_.origin("policy.precision"));
    const std::string optimizer = c_.text(megatron("optimizer.optimizer"), "adam");
    if (optimizer != "adam")
      c_.refuse(megatron("optimizer.optimizer"),
                fmt::format("the optimizer '{}' is not estimated", optimizer), "adam");
    recipe_.set_default("/optimizer", "adamw");
    take_degrees();
    take_recomputing();
  }

  void take_degrees() {
    degree("tensor", megatron("tensor_model_parallel_size"));
    degree("pipeline", megatron("pipeline_model_parallel_size"));
    degree("context", megatron("context_parallel_size"));
    degree("expert", megatron("expert_model_parallel_size"));
    if (c_.integer(megatron("expert_model_parallel_size"), 1) > 1)
      recipe_.set("/parallel/expert_tensor", c_.integer(megatron("expert_tensor_parallel_size"), 1),
                  c_.origin(megatron("expert_tensor_parallel_size")));
    if (c_.integer(megatron("tensor_model_parallel_size"), 1) > 1)
      recipe_.set("/parallel/sequence_parallel", c_.flag(megatron("sequence_parallel"), false),
                  c_.origin(megatron("sequence_parallel")));
    take_uneven_stages();
  }

  void take_uneven_stages() {
    const std::int64_t stages = c_.integer(megatron("pipeline_model_parallel_size"), 1);
    const std::string first_key = megatron("num_layers_in_first_pipeline_stage");
    const std::string last_key = megatron("num_layers_in_last_pipeline_stage");
    const std::int64_t first = c_.integer(first_key, 0), last = c_.integer(last_key, 0);
    if (stages == 1 || (first == 0 && last == 0)) return;
    const std::string& key = first > 0 ? first_key : last_key;
    const std::int64_t layers = known_layers(recipe_, c_.document());
    if (layers == 0)
      c_.refuse(key, "the model's layers are not known", "a model of the catalogue, or --model");
    const std::int64_t between = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
    const std::int64_t rest = layers - first - last;
    if (rest < 0 || (between == 0 ? rest > 0 : rest % between != 0))
      c_.refuse(key, fmt::format("{} layers are left for {} stages", rest, between),
                "numbers that leave equal parts");
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(stages),
                                     between > 0 ? rest / between : 0);
    if (first > 0) blocks.front() = first;
    if (last > 0) blocks.back() = last;
    recipe_.set("/parallel/stage_layers", blocks, c_.origin(key));
  }

  /// setup.py: "full" is uniform, layer by layer.
  void take_recomputing() {
    const std::string key = megatron("activation_checkpointing");
    const std::string how = megatron("recompute_granularity");
    const std::string granularity = c_.text(how, "full");
    if (granularity != "full" && granularity != "selective")
      c_.refuse(how, fmt::format("'{}' is none of Megatron-LM's", granularity),
                "full or selective");
    recipe_.set("/checkpointing", c_.flag(key, false) ? granularity : "none", c_.origin(key));
    const Json* modules = c_.said(megatron("recompute_modules"));
    if (granularity == "selective" && modules != nullptr && *modules != Json{"core_attn"})
      recipe_.note({.kind = Note::Kind::warning,
                    .file = c_.document().file,
                    .key = megatron("recompute_modules"),
                    .reason = "attention alone is estimated as computed again"});
  }

  const HydraConfig& c_;
  Recipe& recipe_;
};

}  // namespace

bool under_megatron(const HydraConfig& config) {
  return config.flag(megatron("enabled"), false);
}

void take_workers(const HydraConfig& config) {
  Workers(config).take();
}

}  // namespace shardplan::importing::nemo_rl
