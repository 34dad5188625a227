// verl's workers over FSDP (0.8: verl/trainer/config/engine/fsdp.yaml,
// verl/workers/fsdp_workers.py, verl/workers/engine/fsdp/transformer_impl.py).
#include <fmt/format.h>

#include "import/kinds/verl_config.h"
#include "import/vocabulary.h"

namespace shardplan::importing::verl {

Json fsdp_framework(const Config& c, const std::string& options, bool second, std::int64_t gpus) {
  const auto key = [&](std::string_view name) { return options + std::string(name); };
  Json framework{{"name", second ? "fsdp2" : "fsdp1"}};
  const std::string reduced = dtype_word(c.text(key("mixed_precision.reduce_dtype"), "fp32"));
  if (!reduced.empty()) framework["reduce_dtype"] = reduced;
  const bool reshards = c.flag(key("reshard_after_forward"), true);
  const std::int64_t size = c.integer(key("fsdp_size"), -1);
  const bool hybrid = size > 0 && (gpus == 0 || size < gpus);
  if (hybrid) framework["hybrid_shard_size"] = size;
  if (second) {
    framework["reshard_after_forward"] = reshards;
    if (c.flag(key("offload_policy"), false)) framework["cpu_offload"] = true;
    return framework;
  }
  if (hybrid)
    framework["sharding_strategy"] = "hybrid_shard";
  else if (!reshards)
    framework["sharding_strategy"] = "shard_grad_op";
  if (c.flag(key("use_orig_params"), false)) framework["use_orig_params"] = true;
  if (c.flag(key("forward_prefetch"), false)) framework["forward_prefetch"] = true;
  return framework;
}

std::string fsdp_precision(const Config& c, const std::string& options) {
  const auto key = [&](std::string_view name) { return options + std::string(name); };
  const std::string kept = dtype_word(c.text(key("model_dtype"), "fp32"));
  const std::string own = c.text(key("dtype"), "bfloat16");
  const std::string computes = dtype_word(c.text(key("mixed_precision.param_dtype"), own));
  if (kept == "fp32" && computes == "fp32") return "fp32";
  if (kept == "fp32" && (computes == "bf16" || computes == "fp16")) return computes + "-autocast";
  if (kept == computes && !kept.empty()) return kept + "-pure";
  c.refuse(key("model_dtype"), fmt::format("parameters in {} that compute in {}", kept, computes),
           "fp32, or the computing type");
}

}  // namespace shardplan::importing::verl
