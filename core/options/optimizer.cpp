// The optimizer: what every one has, and the options of its own that a description lists.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "optimizers/registry.h"
#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

/// Texts and choices that the table refers to.
struct OptimizerTexts {
  std::vector<NamedValue> names;
  std::deque<std::vector<NamedValue>> choices;
  std::deque<std::string> texts;
};

std::vector<NamedValue> named_optimizers() {
  std::vector<NamedValue> names;
  for (const OptimizerDescription* o : optimizers())
    names.push_back(named(o->name, names.size(), o->words));
  return names;
}

OptionValue place_of_kind(const Optimizer& optimizer) {
  return static_cast<std::int64_t>(std::ranges::find(optimizers(), optimizer.kind) -
                                   optimizers().begin());
}

/// One that only `owner` has, read with its description (load/optimizer.h).
Option<Optimizer> own_option(const OptimizerOption& option, const OptimizerDescription& owner,
                             OptimizerTexts& texts) {
  std::vector<NamedValue> choices;
  for (const std::string_view choice : option.choices)
    choices.push_back(named(choice, choices.size()));
  const std::string_view fallback =
      option.kind == OptimizerOption::Kind::flag ? (option.default_value != 0 ? "true" : "false")
      : option.kind == OptimizerOption::Kind::choice
          ? choices[static_cast<std::size_t>(option.default_value)].name
          : std::string_view(texts.texts.emplace_back(fmt::format("{}", option.default_value)));
  const std::string& help =
      texts.texts.emplace_back(fmt::format("{}: {}", owner.words, option.help));
  const OptionKind kind = option.kind == OptimizerOption::Kind::flag     ? OptionKind::boolean
                          : option.kind == OptimizerOption::Kind::choice ? OptionKind::choice
                                                                         : OptionKind::number;
  return special<Optimizer>({.key = option.key,
                             .help = help,
                             .default_text = fallback,
                             .kind = kind,
                             .choices = texts.choices.emplace_back(std::move(choices)),
                             .numbers = {option.least, option.most}});
}

constexpr Option<Optimizer> changes_nothing(std::string_view key) {
  return special<Optimizer>({.key = key,
                             .help = "accepted; changes nothing that is estimated",
                             .kind = OptionKind::number});
}

std::vector<Option<Optimizer>> optimizer_options(OptimizerTexts& texts) {
  texts.names = named_optimizers();
  std::vector<Option<Optimizer>> options{
      special<Optimizer>({.key = "name",
                          .flag = "--optimizer",
                          .also = "--optim --optimizer-name",
                          .help = "the optimizer",
                          .label = "Optimizer",
                          .kind = OptionKind::choice,
                          .choices = texts.names},
                         {.get = place_of_kind}),
      special<Optimizer>({.key = "implementation",
                          .flag = "--optimizer-implementation",
                          .help = "which of PyTorch's implementations",
                          .default_text = "`fused`, or what the optimizer has",
                          .kind = OptionKind::choice,
                          .choices = kImplementations}),
      option<&Optimizer::momentum>(
          {.key = "momentum", .flag = "--momentum", .help = "SGD's momentum", .numbers = {0, 1}}),
      option<&Optimizer::amsgrad>({.key = "amsgrad", .help = "Adam and AdamW: a third state"})};
  for (const OptimizerDescription* owner : optimizers())
    for (const OptimizerOption& own : owner->options) {
      const bool known = std::ranges::any_of(
          options, [&](const Option<Optimizer>& o) { return o.info.key == own.key; });
      if (!known) options.push_back(own_option(own, *owner, texts));
    }
  for (const std::string_view key : {"lr", "weight_decay", "eps"})
    options.push_back(changes_nothing(key));
  options.push_back(special<Optimizer>({.key = "betas",
                                        .help = "accepted; changes nothing that is estimated",
                                        .kind = OptionKind::block}));
  return options;
}

}  // namespace

const OptionTable<Optimizer>& optimizer_table() {
  static OptimizerTexts texts;
  static const std::vector<Option<Optimizer>> kOptions = optimizer_options(texts);
  static const OptionTable<Optimizer> kTable{"optimizer", "", kOptions};
  return kTable;
}

}  // namespace shardplan
