#include "load/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/nearest.h"
#include "load/options.h"
#include "optimizers/registry.h"
#include "optimizers/trainer_words.h"
#include "options/choices.h"
#include "options/tables.h"

namespace shardplan {
namespace {

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerDescription* o : optimizers()) names.emplace_back(o->name);
  for (const OptimizerDescription* o : optimizers())
    names.insert(names.end(), o->spellings.begin(), o->spellings.end());
  return names;
}

std::vector<std::string> implementation_names(const OptimizerDescription& kind) {
  std::vector<std::string> names;
  for (const Variant& v : kind.variants) names.emplace_back(name_of(v.implementation));
  return names;
}

/// Of `kind`, as a job has it that says nothing else.
Optimizer usual(const OptimizerDescription& kind) {
  Optimizer optimizer;
  optimizer.kind = &kind;
  optimizer.implementation = kind.variants.front().implementation;
  for (std::size_t i = 0; i < kind.options.size(); ++i)
    optimizer.options[i] = kind.options[i].default_value;
  return optimizer;
}

void read_implementation(ObjectReader& o, Optimizer& optimizer) {
  const auto said =
      read_as<OptimizerImplementation>(o, info_of(optimizer_table(), "implementation"));
  if (!said) return;
  const std::vector<std::string> known = implementation_names(*optimizer.kind);
  if (std::ranges::find(known, name_of(*said)) == known.end())
    o.fail("implementation", fmt::format("{} has no {} one", optimizer.kind->words, name_of(*said)),
           fmt::format("{}", fmt::join(known, " or ")));
  optimizer.implementation = *said;
}

double read_option(ObjectReader& o, const OptimizerOption& option) {
  switch (option.kind) {
    case OptimizerOption::Kind::flag:
      return o.boolean(option.key).value_or(option.default_value != 0) ? 1 : 0;
    case OptimizerOption::Kind::number:
      return o.number(option.key, option.least, option.most).value_or(option.default_value);
    case OptimizerOption::Kind::choice: {
      const std::vector<std::string> choices(option.choices.begin(), option.choices.end());
      const auto said = o.choice(option.key, choices);
      if (!said) return option.default_value;
      return static_cast<double>(std::ranges::find(choices, *said) - choices.begin());
    }
  }
  return option.default_value;
}

/// What transformers calls so, where no job does: "adamw_torch_fused".
std::optional<Optimizer> as_transformers_call_it(const Json* name) {
  if (name == nullptr || !name->is_string()) return std::nullopt;
  const std::string word = name->get<std::string>();
  const std::vector<std::string> names = optimizer_names();
  if (std::ranges::find(names, word) != names.end()) return std::nullopt;
  for (const OptimizerWord& w : kOptimizerWords) {
    if (normalized(w.word) != normalized(word)) continue;
    Optimizer optimizer = usual(*find_optimizer(w.name));
    if (const NamedValue* how = find_choice(kImplementations, w.implementation))
      optimizer.implementation = static_cast<OptimizerImplementation>(how->value);
    return optimizer;
  }
  return std::nullopt;
}

/// What is taken where the job does not say how, and cannot be fused.
void note_implementation(const Optimizer& optimizer, std::vector<std::string>& assumed) {
  if (optimizer.implementation == OptimizerImplementation::fused) return;
  assumed.push_back(fmt::format("optimizer implementation: {} ({} has no fused one)",
                                name_of(optimizer.implementation), optimizer.kind->words));
}

}  // namespace

std::string_view name_of(OptimizerImplementation implementation) {
  return name_in(kImplementations, static_cast<std::int64_t>(implementation));
}

Optimizer load_optimizer(ObjectReader& job, std::vector<std::string>& assumed) {
  const Json* value = job.find("optimizer");
  if (value == nullptr) return usual(default_optimizer());
  if (const auto named = as_transformers_call_it(value)) return *named;
  if (value->is_string()) {
    const Optimizer named = usual(*find_optimizer(*job.choice("optimizer", optimizer_names())));
    note_implementation(named, assumed);
    return named;
  }
  ObjectReader o(*value, job.file(), job.path_of("optimizer"));
  const auto word = as_transformers_call_it(o.find("name"));
  const auto name = word ? std::nullopt : o.choice("name", optimizer_names());
  Optimizer optimizer = word ? *word : usual(name ? *find_optimizer(*name) : default_optimizer());
  read_implementation(o, optimizer);
  if (!o.has("implementation")) note_implementation(optimizer, assumed);
  read_options(o, optimizer_table(), optimizer);
  for (std::size_t i = 0; i < optimizer.kind->options.size(); ++i)
    optimizer.options[i] = read_option(o, optimizer.kind->options[i]);
  for (const auto* key : {"lr", "weight_decay", "eps"}) o.number(key);
  o.find("betas");
  o.finish();
  return optimizer;
}

Optimizer deepspeed_optimizer(std::string_view type, const std::string& file) {
  if (normalized(type) == "torchadam") return usual(default_optimizer());
  if (const OptimizerDescription* kind = find_deepspeed_optimizer(type)) return usual(*kind);
  std::vector<std::string_view> known;
  for (const OptimizerDescription* o : optimizers())
    if (!o->deepspeed.types.empty()) known.push_back(o->deepspeed.types.front());
  throw InputError({.file = file,
                    .key = "optimizer.type",
                    .message = fmt::format("the memory of optimizer '{}' is not known", type),
                    .expected = fmt::format("{} or a 1-bit variant", fmt::join(known, ", "))});
}

}  // namespace shardplan
