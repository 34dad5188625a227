// Element types, by preset or one by one.
#include <utility>

#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"
#include "plan/precision_presets.h"

namespace shardplan {
namespace {

template <auto Member>
constexpr Option<Precision> type(std::string_view key, std::string_view help,
                                 std::string_view fallback, OptionRules<Precision> rules = {}) {
  return option<Member>({.key = key,
                         .help = help,
                         .default_text = fallback,
                         .kind = OptionKind::dtype,
                         .choices = kStateTypes},
                        rules);
}

template <std::size_t... I>
constexpr auto names_of_presets(std::index_sequence<I...>) {
  return std::array{named(kPrecisionPresets[I].name, I)...};
}
constexpr auto kPresetNames =
    names_of_presets(std::make_index_sequence<kPrecisionPresets.size()>());

constexpr std::array kPresetOptions{special<Plan>(
    {.key = "precision",
     .flag = "--precision",
     .also = "--dtype --mixed-precision --torch-dtype",
     .switches = "--bf16=bf16 --fp16=fp16 --fp32=fp32 --bfloat16=bf16 --half=fp16",
     .help = "element types",
     .label = "Precision",
     .default_text = "`bf16-master` with deepspeed, megatron and native; `bf16-pure` for "
                     "inference and for LoRA; else `bf16-autocast`; in fp16 on GPUs without bf16 "
                     "units",
     .kind = OptionKind::choice,
     .choices = kPresetNames})};

OptionValue as_params(const Precision& p) {
  return static_cast<std::int64_t>(p.params);
}

template <std::size_t... I>
constexpr auto names_of_recipes(std::index_sequence<I...>) {
  return std::array{named(kProductRecipes[I].name, I, kProductRecipes[I].words)...};
}
constexpr auto kRecipeNames = names_of_recipes(std::make_index_sequence<kProductRecipes.size()>());

constexpr std::array kPrecisionOptions{
    type<&Precision::params>("params", "parameters", "fp32",
                             {.open = [](const Precision&) -> OptionValue {
                               return static_cast<std::int64_t>(DType::f32);
                             }}),
    type<&Precision::compute>("compute", "what products are computed in", "as `params`",
                              {.open = as_params}),
    type<&Precision::gradients>("gradients", "gradients", "as `params`", {.open = as_params}),
    type<&Precision::master>("master", "a copy that the optimizer updates", "none",
                             {.open = [](const Precision&) { return OptionValue(); }}),
    type<&Precision::optimizer_states>(
        "optimizer_states", "the optimizer's states", "as `master`, else as `params`",
        {.open = [](const Precision& p) -> OptionValue {
          return static_cast<std::int64_t>(p.master.value_or(p.params));
        }}),
    type<&Precision::reduce>("reduce", "gradients while they are exchanged", "as `gradients`"),
    special<Precision>({.key = "preset",
                        .help = "the name of a preset that says the rest, beside `linear`",
                        .default_text = "none",
                        .kind = OptionKind::choice,
                        .choices = kPresetNames}),
    option<&Precision::linear>({.key = "linear",
                                .flag = "--linear",
                                .switches = "--fp8=fp8-tensorwise --mxfp8=mxfp8 --nvfp4=nvfp4",
                                .help = "what linear layers inside the blocks multiply in",
                                .doc = "what linear layers inside the blocks multiply in "
                                       "([memory.md](../explanation/memory.md#activations))",
                                .default_text = "as computed",
                                .choices = kRecipeNames}),
};

}  // namespace

const OptionTable<Plan>& preset_option_table() {
  static constexpr OptionTable<Plan> kTable{"", "", kPresetOptions};
  return kTable;
}

const OptionTable<Precision>& precision_table() {
  static constexpr OptionTable<Precision> kTable{"precision", "", kPrecisionOptions};
  return kTable;
}

}  // namespace shardplan
