// What HF Trainer and what is built on it make of bf16 and fp16, by framework.
#include <fmt/format.h>

#include "import/finisher.h"

namespace shardplan::importing {

/// What HF Trainer and what is built on it make of bf16 and fp16: DeepSpeed's engine keeps
/// master weights; accelerate casts what FSDP trains to fp32 (utils/fsdp_utils.py,
/// accelerator.py); else weights stay as they were loaded and the forward is under autocast.
void Finisher::take_precision() {
  if (recipe_.has_precision() || flags_.contains("precision")) return;
  const bool bf16 = recipe_.bf16.value_or(false);
  const std::string half = bf16 ? "bf16" : recipe_.fp16.value_or(false) ? "fp16" : "";
  const std::string name = framework();
  if (name == "deepspeed") {
    take_moved_weights();
    return under_deepspeed(half);
  }
  const Weights& w = recipe_.weights;
  const bool lora = !recipe_.lora.is_null();
  const bool half_shards = name == "fsdp2" && w.dtype == half && (w.kept_in_shards || lora);
  const bool shards = name.starts_with("fsdp") && !half_shards;
  if (half.empty()) {
    const bool kept = w.dtype == "bf16" || w.dtype == "fp16";
    const bool trains = kept && !lora && recipe_.linear.empty();
    if (trains && name.starts_with("fsdp"))  // where a preset is what accelerate makes of it
      return recipe_.assume("/precision", Json{{"params", w.dtype}}, "weights as loaded");
    set_precision(kept ? w.dtype + "-pure" : "fp32",
                  kept ? "weights as loaded" : "no bf16 or fp16");
  } else if (name == "fsdp1" && lora && freezes_in(half)) {
    set_precision(half + "-pure", "the frozen model in " + half +
                                      "; accelerate casts what trains, the adapters, to fp32");
  } else if (shards || w.trained_fp32 || w.dtype == "fp32") {
    set_precision(half + "-autocast", shards ? "accelerate casts what FSDP trains to fp32"
                                             : "weights in fp32, computing in " + half);
  } else if (w.dtype.empty() && !lora) {
    set_precision(half + "-autocast",
                  "weights in fp32: the files do not say how the program loads them");
  } else {
    set_precision(half + "-pure", lora ? "the frozen model in " + half + ", adapters in fp32"
                                       : "weights loaded in " + half);
  }
}

/// Under FSDP1 what is frozen keeps its type where a flat tensor does not hold it with adapters.
bool Finisher::freezes_in(const std::string& half) const {
  const Json* originals = recipe_.find("/framework/use_orig_params");
  const bool apart = originals != nullptr && *originals == false;
  return recipe_.lora.contains("quantization") || (apart && recipe_.weights.dtype == half);
}

void Finisher::set_precision(const std::string& name, std::string why) {
  if (recipe_.linear.empty())
    recipe_.assume("/precision", name, std::move(why));
  else
    recipe_.assume("/precision", Json{{"preset", name}, {"linear", recipe_.linear}},
                   std::move(why));
}

/// A ds_config that says its precision itself is left alone.
void Finisher::under_deepspeed(const std::string& half) {
  const Json* config = recipe_.find("/framework/ds_config");
  const auto decided = [&](const char* block) {
    const Json* enabled =
        config == nullptr ? nullptr : value_below_block(*config, block, "enabled");
    return enabled != nullptr && enabled->is_boolean() && *enabled == true;
  };
  if (decided("bf16") || decided("bfloat16") || decided("fp16")) return;
  if (config != nullptr && config->contains("torch_autocast")) return;
  const bool has_trainer = recipe_.bf16 || recipe_.fp16;
  if (!half.empty())
    set_precision(half + "-master", "the engine computes in it and keeps fp32 master weights");
  else if (has_trainer)
    set_precision("fp32", "neither bf16 nor fp16");
}

/// Parameters that ZeRO-3 keeps on the host have the type in which the model was loaded, unless its
/// program casts it behind zero.Init, which is assumed where nothing is known.
void Finisher::take_moved_weights() {
  const Json* device = recipe_.find("/framework/ds_config/zero_optimization/offload_param/device");
  const Json* stage = recipe_.find("/framework/ds_config/zero_optimization/stage");
  if (device == nullptr || *device == "none" || stage == nullptr || *stage != 3) return;
  const Weights& w = recipe_.weights;
  if (!w.left_by_zero3 || (w.dtype != "bf16" && w.dtype != "fp16")) return;
  recipe_.assume("/framework/model_dtype", w.dtype, "weights as loaded, which nothing casts");
}

const Json* Finisher::value_below_block(const Json& config, const char* block, const char* key) {
  const auto found = config.find(block);
  if (found == config.end() || !found->is_object() || !found->contains(key)) return nullptr;
  return &found->at(key);
}

}  // namespace shardplan::importing
