// Liger's kernels: those that it has for the model, and those that are estimated.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "import/finisher.h"
#include "kernels/description.h"

namespace shardplan::importing {

/// Liger's kernels are estimated in a compiled model with rotation and fused loss among them,
/// over weights that are not packed (core/compile/problems.cpp).
bool Finisher::compiles_kernels() const {
  const Json* kernels = recipe_.find("/kernels");
  if (kernels == nullptr || *kernels == "torch") return true;
  if (recipe_.lora.is_object() && recipe_.lora.contains("quantization")) return false;
  const auto has = [&](const char* name) {
    return *kernels == "liger" || std::ranges::find(*kernels, Json(name)) != kernels->end();
  };
  return has("rope") && has("fused_linear_cross_entropy");
}

void Finisher::take_compile() {
  const Json* asked = recipe_.find("/compile");
  if (asked == nullptr || *asked == false) return;
  if (!compiles_kernels()) {
    recipe_.job.erase("compile");
    recipe_.note({.kind = Note::Kind::warning,
                  .key = "torch_compile",
                  .reason = "these kernels of Liger's are estimated in a model that is not "
                            "compiled, which keeps more as a rule"});
    return;
  }
}

/// Switches of single kernels are for every model; Liger has not all of them for each.
void Finisher::take_kernels() {
  const LigerPatch* patch = find_liger_patch(model_type());
  if (patch != nullptr && !patch->refused.empty()) return take_no_kernels(*patch);
  if (!recipe_.liger.empty() && patch != nullptr) choose_kernels(*patch);
  const Json* wanted = recipe_.find("/kernels");
  if (wanted == nullptr || !wanted->is_array()) return;
  Json kept = Json::array();
  for (const Json& name : *wanted) {
    const std::string word = name.get<std::string>();
    const std::string gated = word == "swiglu" ? "geglu" : word;
    if (patch != nullptr && takes(*patch, word))
      kept.push_back(word);
    else if (patch != nullptr && takes(*patch, gated))
      kept.push_back(gated);
    else
      recipe_.note({.kind = Note::Kind::ignored,
                    .key = "liger " + word,
                    .reason = "Liger has none for this model type"});
  }
  if (kept.empty())
    recipe_.job.erase("kernels");
  else
    recipe_.job["kernels"] = kept;
}

/// Liger's experts are not estimated. PyTorch's own kernels keep more; the fused loss is left.
void Finisher::take_no_kernels(const LigerPatch& patch) {
  const Json* wanted = recipe_.find("/kernels");
  if (wanted == nullptr || *wanted == "torch") return;
  constexpr std::string_view kFused = "fused_linear_cross_entropy";
  const bool fuses = wanted->is_array()
                         ? std::find(wanted->begin(), wanted->end(), kFused) != wanted->end()
                         : (patch.usual & bit_of(KernelName::fused_linear_cross_entropy)) != 0;
  const auto said = recipe_.liger.find(std::string(kFused));
  recipe_.job.erase("kernels");
  if (said == recipe_.liger.end() ? fuses : said->second)
    recipe_.set_default("/loss", "fused_linear");
  recipe_.note({.kind = Note::Kind::warning,
                .key = "Liger's kernels",
                .reason = fmt::format("of type {} are not estimated: PyTorch's are, which keep "
                                      "more, and the loss in parts where it is asked for",
                                      patch.model_type)});
}

/// liger_kernel_config over what Liger patches unless told otherwise.
void Finisher::choose_kernels(const LigerPatch& patch) {
  Json names = Json::array();
  const std::span<const FusedKernel* const> all = fused_kernels();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto said = recipe_.liger.find(std::string(all[i]->name));
    const bool usual = (patch.usual & bit_of(static_cast<KernelName>(i))) != 0;
    if (said == recipe_.liger.end() ? usual : said->second) names.push_back(all[i]->name);
  }
  recipe_.job["kernels"] = std::move(names);
}

bool Finisher::takes(const LigerPatch& patch, const std::string& name) {
  const std::span<const FusedKernel* const> all = fused_kernels();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i]->name == name)
      return (patch.takes & ~patch.without_effect & bit_of(static_cast<KernelName>(i))) != 0;
  return false;
}

}  // namespace shardplan::importing
