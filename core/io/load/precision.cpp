#include "load/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/nearest.h"
#include "base/said.h"
#include "formats/dtype.h"
#include "formats/product_recipe.h"
#include "frameworks/registry.h"
#include "load/options.h"
#include "options/tables.h"
#include "plan/precision_presets.h"

namespace shardplan {
namespace {

/// The rest as the preset says it.
Precision on_preset(ObjectReader& object, std::string_view preset) {
  Precision p = precision_preset(preset);
  p.linear = read_as<LinearRecipe>(object, info_of(precision_table(), "linear"))
                 .value_or(LinearRecipe::computed);
  if (p.linear != LinearRecipe::computed) p.name += fmt::format(" with {}", name_of(p.linear));
  object.finish();
  return p;
}

/// Of those that cast, or what several of them begin with ("fp8"): what `precision` cannot be.
bool is_recipe(std::string_view name) {
  return !name.empty() && std::ranges::any_of(kProductRecipes, [&](const ProductRecipe& recipe) {
    return recipe.cast != OperandCast::none &&
           (recipe.name == name || recipe.name.starts_with(std::string(name) + '-'));
  });
}

/// A preset's name where its types are those, so that what was said one by one is called the same.
std::string_view name_of_types(const Precision& p) {
  const auto same = [&](const PrecisionPreset& preset) {
    return preset.params == p.params && preset.compute == p.compute &&
           preset.gradients == p.gradients && preset.states == p.optimizer_states &&
           p.master == preset.precision().master;
  };
  const auto found = std::ranges::find_if(kPrecisionPresets, same);
  return found != kPrecisionPresets.end() && !p.reduce ? found->name : "custom";
}

/// `linear` alone leaves the rest as it would be without it.
bool says_linear_alone(const Json& precision) {
  return precision.size() == 1 && precision.contains("linear");
}

Precision custom(ObjectReader object, const Json& said, std::string_view fallback) {
  if (const auto preset = object.choice("preset", precision_names()))
    return on_preset(object, *preset);
  if (says_linear_alone(said)) return on_preset(object, fallback);
  Precision p;
  read_options(object, precision_table(), p);
  object.finish();
  p.name = name_of_types(p);
  if (p.linear != LinearRecipe::computed) p.name += fmt::format(" with {}", name_of(p.linear));
  if (p.compute != p.params && p.params != DType::f32)
    object.fail("compute", "computing in another type than 16-bit parameters have",
                "params fp32 (autocast), or the same type");
  if (p.gradients != p.params)
    object.fail("gradients", "PyTorch gives a gradient the type of its parameter",
                std::string(name_of(p.params)));
  return p;
}

}  // namespace

namespace {

/// "bf16", "float16": a type alone, in the way of the preset that would be taken without it.
std::optional<std::string> preset_of_type(const Json& value, std::string_view fallback) {
  if (!value.is_string()) return std::nullopt;
  const std::string said = value.get<std::string>();
  const auto exact = parse_dtype(said);
  const auto type = exact ? exact : parse_dtype(normalized(said));  // "bf-16", "FP16"
  if (!type) return std::nullopt;
  const std::string name(name_of(*type));
  const std::size_t dash = fallback.find('-');
  if (*type == DType::f32 || dash == std::string_view::npos) return name;
  return name + std::string(fallback.substr(dash));
}

/// The preset that "bf16-mixed" (Lightning) and "amp_bf16" (Composer) are names of, or "".
std::string as_trainers_call_it(std::string_view said) {
  const std::string plain = normalized(said);
  if (plain.find("mixed") == std::string::npos && plain.find("amp") == std::string::npos) return {};
  return plain.find("fp16") != std::string::npos || plain == "16mixed" ? "fp16-autocast"
                                                                       : "bf16-autocast";
}

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const PrecisionPreset& preset : kPrecisionPresets) names.emplace_back(preset.name);
  return names;
}

Precision precision_preset(std::string_view name) {
  for (const PrecisionPreset& preset : kPrecisionPresets)
    if (preset.name == name) return preset.precision();
  const std::vector<std::string> names = precision_names();
  throw InputError({.key = "precision",
                    .message = fmt::format("unknown precision '{}'", name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = nearest(name, std::span<const std::string>(names))});
}

Precision load_precision(ObjectReader& job, std::string_view fallback) {
  const Json* value = job.find("precision");
  if (value == nullptr) return precision_preset(fallback);
  if (value->is_object())
    return custom(ObjectReader(*value, job.file(), job.path_of("precision")), *value, fallback);
  if (value->is_string() && is_recipe(value->get<std::string>()))
    job.fail("precision", say("{} is of linear layers alone", value->get<std::string>()),
             "precision.linear (--linear) beside a preset");
  const std::vector<std::string> names = precision_names();
  if (const auto preset = preset_of_type(*value, fallback);
      preset && std::ranges::find(names, *preset) != names.end())
    return precision_preset(*preset);
  const auto name = value->is_string() ? as_trainers_call_it(value->get<std::string>()) : "";
  if (!name.empty())
    job.fail("precision", fmt::format("unknown value '{}'", value->get<std::string>()),
             fmt::format("one of {}", fmt::join(names, ", ")), name);
  return precision_preset(*job.choice("precision", names));
}

std::string_view on_this_gpu(std::string_view preset, const Gpu& gpu) {
  if (!preset.starts_with("bf16") || !lacks(gpu, PeakRate::bf16)) return preset;
  const std::string other = fmt::format("fp16{}", preset.substr(4));
  for (const PrecisionPreset& known : kPrecisionPresets)
    if (known.name == other) return known.name;
  return preset;
}

std::string_view training_precision(const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  return on_this_gpu(
      plan.workload.lora ? framework.lora_precision.get() : framework.default_precision.get(),
      plan.cluster.gpu);
}

}  // namespace shardplan
