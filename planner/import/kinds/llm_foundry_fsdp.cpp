// composer's FSDPConfig (640518880, April 2026: composer/utils/parallelism.py,
// distributed/dist_strategy.py, mosaic_parallelism.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "import/kinds/llm_foundry.h"

namespace shardplan::importing::llm_foundry {
namespace {

/// Keys that say nothing of memory or time, or only beside Transformer Engine.
constexpr std::array<std::string_view, 11> kElsewhere{"activation_checkpointing_reentrant",
                                                      "load_monolith_rank0_only",
                                                      "load_planner",
                                                      "save_planner",
                                                      "sharded_ckpt_prefix_dir",
                                                      "sync_module_states",
                                                      "te_checkpoint_wrapper",
                                                      "te_shard_fp8_weight",
                                                      "verbose",
                                                      "flatten_parameters",
                                                      "min_params"};

class FsdpReader {
 public:
  explicit FsdpReader(Key& key) : key_(key) {}

  void read() {
    if (!key_.value().is_object()) key_.refuse("is no mapping", "FSDP's options by name");
    Json framework{{"name", "fsdp1"},
                   {"sharding_strategy", "full_shard"},
                   {"use_orig_params", true},
                   {"backward_prefetch", "post"},
                   {"state_dict_type", "full"}};
    bool checkpoints = false, offloads = false;
    std::string precision = "default";
    for (const auto& [name, value] : key_.value().items()) {
      const Key one(key_.document(), key_.path() + "." + name, value, "", key_.recipe());
      if (value.is_null()) continue;
      if (name == "sharding_strategy")
        framework[name] = strategy(one);
      else if (name == "mixed_precision")
        precision = half(one);
      else if (name == "activation_checkpointing")
        checkpoints = one.flag();
      else if (name == "activation_cpu_offload")
        offloads = one.flag();
      else if (name == "backward_prefetch")
        framework[name] = prefetch(one);
      else if (name == "forward_prefetch" || name == "limit_all_gathers" ||
               name == "use_orig_params" || name == "cpu_offload" ||
               name == "keep_low_precision_grads")
        framework[name] = one.flag();
      else if (name == "state_dict_type")
        framework[name] = lower(one.text());
      else if (name == "data_parallel_shard_degree")
        shards_ = value;
      else if (name == "data_parallel_replicate_degree")
        copies_ = one.integer(1);
      else if (name == "auto_wrap")
        whole(one);
      else if (name == "backward_prefetch_limit" || name == "forward_prefetch_limit")
        limit(one);
      else if (std::ranges::find(kElsewhere, name) == kElsewhere.end())
        one.refuse("is not read", "no such key");
    }
    if (copies_ > 1) hybrid(framework);
    if (precision == "default") framework["reduce_dtype"] = "fp32";
    if (offloads && !checkpoints)
      key_.refuse("activation_cpu_offload without checkpointing is not estimated",
                  "activation_checkpointing: true beside it");
    if (checkpoints)
      key_.recipe().set("/checkpointing",
                        offloads ? Json{{"policy", "full"}, {"offload", true}} : Json("full"),
                        key_.origin());
    key_.recipe().set("/framework", framework, key_.origin());
    key_.took("framework: " + framework.dump());
  }

 private:
  static std::string strategy(const Key& one) {
    std::string name = lower(one.text());
    for (const char* known : {"full_shard", "shard_grad_op", "hybrid_shard", "no_shard"})
      if (name == known) return name;
    one.refuse(fmt::format("found '{}'", one.text()),
               "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD or NO_SHARD");
  }

  /// PURE reduces gradients in the computing type, DEFAULT in fp32.
  static std::string half(const Key& one) {
    const std::string name = one.value().is_string() ? lower(one.text()) : "";
    if (name == "pure" || name == "default") return name;
    one.refuse("gathers in fp32 and types of one's own are not estimated", "PURE or DEFAULT");
  }

  static std::string prefetch(const Key& one) {
    const std::string name = lower(one.text());
    if (name == "backward_pre") return "pre";
    if (name == "backward_post") return "post";
    one.refuse(fmt::format("found '{}'", one.text()), "BACKWARD_PRE or BACKWARD_POST");
  }

  static void whole(const Key& one) {
    if (!one.flag()) one.refuse("one flat parameter of all blocks is not estimated", "true");
  }

  static void limit(const Key& one) {
    if (one.integer(1) > 1) one.refuse("more gathers ahead than one are not estimated", "1");
  }

  void hybrid(Json& framework) const {
    if (!shards_.is_number_integer() || shards_ < 1)
      key_.refuse("data_parallel_shard_degree is left open beside copies",
                  "the GPUs that divide one copy");
    if (framework["sharding_strategy"] != "full_shard" &&
        framework["sharding_strategy"] != "hybrid_shard")
      key_.refuse("copies of states that are not fully divided are not estimated", "FULL_SHARD");
    framework["sharding_strategy"] = "hybrid_shard";
    framework["hybrid_shard_size"] = shards_;
  }

  Key& key_;
  Json shards_ = Json();
  std::int64_t copies_ = 1;
};

}  // namespace

void read_fsdp(Key& key) {
  FsdpReader(key).read();
}

}  // namespace shardplan::importing::llm_foundry
