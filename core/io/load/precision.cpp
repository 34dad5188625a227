#include "load/precision.h"

#include <fmt/format.h>

#include <array>

#include "base/nearest.h"

namespace shardplan {
namespace {

struct Preset {
  std::string_view name;
  DType params, compute, gradients, states;
  bool master;
};

constexpr DType kF32 = DType::f32, kBf16 = DType::bf16, kF16 = DType::f16;
constexpr std::array kPresets{
    Preset{"fp32", kF32, kF32, kF32, kF32, false},
    Preset{"bf16-pure", kBf16, kBf16, kBf16, kBf16, false},
    Preset{"fp16-pure", kF16, kF16, kF16, kF16, false},
    Preset{"bf16-autocast", kF32, kBf16, kF32, kF32, false},
    Preset{"fp16-autocast", kF32, kF16, kF32, kF32, false},
    Preset{"bf16-master", kBf16, kBf16, kBf16, kF32, true},
    Preset{"fp16-master", kF16, kF16, kF16, kF32, true},
};

std::optional<DType> read_dtype(ObjectReader& object, std::string_view key) {
  const auto name = object.text(key);
  if (!name) return std::nullopt;
  const auto type = parse_dtype(*name, kTrainingType);
  if (!type) {
    const std::vector<std::string> known = dtype_names(kTrainingType);
    object.fail(key, fmt::format("unknown dtype '{}'", *name), alternatives(known),
                nearest(*name, std::span<const std::string>(known)));
  }
  return type;
}

Precision custom(ObjectReader object) {
  Precision p;
  p.name = "custom";
  p.params = read_dtype(object, "params").value_or(kF32);
  p.compute = read_dtype(object, "compute").value_or(p.params);
  p.gradients = read_dtype(object, "gradients").value_or(p.params);
  p.master = read_dtype(object, "master");
  p.optimizer_states = read_dtype(object, "optimizer_states").value_or(p.master.value_or(p.params));
  p.reduce = read_dtype(object, "reduce");
  object.finish();
  if (p.compute != p.params && p.params != kF32)
    object.fail("compute", "computing in another type than 16-bit parameters have",
                "params fp32 (autocast), or the same type");
  if (p.gradients != p.params)
    object.fail("gradients", "PyTorch gives a gradient the type of its parameter",
                std::string(name_of(p.params)));
  return p;
}

}  // namespace

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Preset& p : kPresets) names.emplace_back(p.name);
  return names;
}

Precision precision_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name != name) continue;
    Precision p;
    p.name = std::string(name);
    p.params = preset.params;
    p.compute = preset.compute;
    p.gradients = preset.gradients;
    p.optimizer_states = preset.states;
    p.master = preset.master ? std::optional(kF32) : std::nullopt;
    return p;
  }
  const std::vector<std::string> names = precision_names();
  throw InputError({.key = "precision",
                    .message = fmt::format("unknown precision '{}'", name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = nearest(name, std::span<const std::string>(names))});
}

Precision load_precision(ObjectReader& job, std::string_view fallback) {
  const Json* value = job.find("precision");
  if (value == nullptr) return precision_preset(fallback);
  if (value->is_object()) return custom(ObjectReader(*value, job.file(), job.path_of("precision")));
  const auto name = job.choice("precision", precision_names());
  return precision_preset(*name);
}

}  // namespace shardplan
