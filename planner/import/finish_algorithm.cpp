// A workload of several models from what was read as one of a single model.
#include <algorithm>

#include "import/finisher.h"
#include "kernels/description.h"
#include "lowering/rlhf/algorithms.h"

namespace shardplan::importing {

/// A workload of several models has its batch and method among its own keys.
void Finisher::take_algorithm() {
  if (recipe_.algorithm.empty()) return;
  Json old = recipe_.job.value("workload", Json::object());
  Json workload{{"kind", "rlhf"}, {"algorithm", recipe_.algorithm}};
  for (const char* key : {"micro_batch", "gradient_accumulation", "method", "lora", "frozen"})
    if (old.contains(key)) workload[key] = old[key];
  const bool generates =
      recipe_.rlhf.contains("prompt_length") && recipe_.rlhf.contains("new_tokens");
  if (!generates && old.contains("sequence_length"))
    workload["sequence_length"] = old["sequence_length"];
  for (const auto& [key, value] : recipe_.rlhf.items()) workload[key] = value;
  if (const std::string kept = reference_precision(workload); !kept.empty())
    workload["models"]["reference"]["precision"] = kept;
  recipe_.job["workload"] = std::move(workload);
  leave_out_losses();
}

/// accelerate casts to fp32 what FSDP trains; a reference stays as it was loaded (TRL 1.16,
/// models/utils.py, prepare_fsdp).
std::string Finisher::reference_precision(const Json& workload) const {
  const AlgorithmDescription* own = nullptr;
  for (const AlgorithmDescription& a : kAlgorithmDescriptions)
    if (a.name == recipe_.algorithm) own = &a;
  const bool copy = own != nullptr && own->has_reference && recipe_.lora.is_null() &&
                    workload.value("reference", "copy") == "copy";
  const std::string& dtype = recipe_.weights.dtype;
  const bool half = dtype == "bf16" || dtype == "fp16";
  return copy && half && framework().starts_with("fsdp") ? dtype + "-pure" : "";
}

/// The losses of these algorithms are their trainers' own, over logits or tiles of them.
void Finisher::leave_out_losses() {
  const auto leave_out = [&](const char* key) {
    recipe_.note({.kind = Note::Kind::ignored,
                  .key = key,
                  .reason = "the algorithm's loss is its trainer's own"});
  };
  if (recipe_.job.erase("loss") > 0) leave_out("loss");
  const Json* wanted = recipe_.find("/kernels");
  if (wanted == nullptr) return;
  Json names = *wanted;
  if (names == "liger") {
    names = Json::array();
    const LigerPatch* patch = find_liger_patch(model_type());
    for (std::size_t i = 0; patch != nullptr && i < fused_kernels().size(); ++i)
      if ((patch->usual & bit_of(static_cast<KernelName>(i))) != 0)
        names.push_back(fused_kernels()[i]->name);
  }
  if (!names.is_array()) return;
  Json kept = Json::array();
  for (const Json& name : names)
    if (name != "cross_entropy" && name != "fused_linear_cross_entropy") kept.push_back(name);
  if (kept.size() != names.size()) leave_out("liger's losses");
  recipe_.job["kernels"] = kept;
  if (kept.empty()) recipe_.job.erase("kernels");
}

}  // namespace shardplan::importing
