// An option of a job, described once: its key, what it can be, where a plan keeps it, its default
// and its words. The JSON reader and writer (core/io), the flags, the tables of
// docs/reference/job.md, the windows' forms and the key of a pass (estimate/passes.h) are all made
// from these descriptions.
//
// An option is one entry of a table; a table is one object of a job: "framework" of one framework,
// "workload.lora", "parallel". Rules that span several options are code beside their table.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/quantity.h"

namespace shardplan {

/// A value of any option, apart from JSON. No value: left open. A choice is the number of its
/// NamedValue.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                                 std::vector<std::string>, std::vector<std::int64_t>>;

/// Whether there is a value, and a list has something in it.
bool is_said(const OptionValue& value);

enum class OptionKind : std::uint8_t {
  boolean,
  integer,
  number,
  text,
  choice,    ///< one of `choices`
  dtype,     ///< the same; other spellings of element types are read too
  texts,     ///< a list of names
  integers,  ///< a list of numbers
  block,     ///< an object: a table of its own, or read by code of its own
};

/// What a job calls one value of an enumeration or a switch.
struct NamedValue {
  std::string_view name = {};    ///< in jobs: "full"
  std::int64_t value = 0;        ///< of the enumeration, or of a bool
  std::string_view label = {};   ///< in windows: "every block"; "": the name
  std::string_view former = {};  ///< an earlier spelling, still read
  std::string_view also = {};    ///< other words for it, blanks between: "flash_attention_2 fa2"
};

/// The choice that a job calls `name`, or that one of its other words means, whatever its case and
/// with '-' for '_'; null when there is none.
const NamedValue* find_choice(std::span<const NamedValue> choices, std::string_view name);

/// The words of a text with blanks between.
std::vector<std::string_view> words_of(std::string_view text);

/// "full", or "" when `choices` have no such value.
std::string_view name_in(std::span<const NamedValue> choices, std::int64_t value);

struct IntegerRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
struct NumberRange {
  double least = -1e300;
  double most = 1e300;
};

/// What is said of an option apart from where its value is kept.
struct OptionInfo {
  std::string_view key = {};   ///< within its object: "reduce_dtype"
  std::string_view flag = {};  ///< "--reduce-dtype"; "": none
  std::string_view also = {};  ///< other flags for it, blanks between: "--zero --stage"
  /// Flags that say a value, blanks between: "--bf16=bf16".
  std::string_view switches = {};
  std::string_view help = {};  ///< one line, without choices: "type in which gradients are reduced"
  std::string_view doc = {};   ///< for docs/reference/job.md, Markdown; "": as `help`
  std::string_view label = {};  ///< in windows: "Reduce type"; "": in no form
  std::string_view unit = {};   ///< "elements", "MiB"
  std::string_view default_text =
      {};                          ///< a rule in words: "the compute type"; "": the default's value
  std::string_view elements = {};  ///< of a list, in errors: "module names"
  OptionKind kind = OptionKind::text;        ///< where a member keeps the value: by its type
  std::span<const NamedValue> choices = {};  ///< of kinds choice and dtype, in the order shown
  IntegerRange integers = {};
  NumberRange numbers = {};
  Magnitude magnitude = Magnitude::count;  ///< of numbers with letters: "8k"
  bool required = false;
  /// Whether a pass over the network depends on it (estimate/passes.h). The value is a number then.
  bool changes_passes = false;
};

/// Where a value is kept in a Root: a Plan, a Framework, ...
template <typename Root>
struct OptionAccess {
  OptionValue (*get)(const Root&) = nullptr;
  void (*set)(Root&, const OptionValue&) = nullptr;
};

/// What depends on other options.
template <typename Root>
struct OptionRules {
  /// The value of an option that is left open; null: what a Root has from the start.
  OptionValue (*open)(const Root&) = nullptr;
  /// Whether a job that is written says it; null: whenever there is a value.
  bool (*written)(const Root&) = nullptr;
};

template <typename Root>
struct Option {
  OptionInfo info;
  OptionAccess<Root> access = {};  ///< null: code of its own reads and writes it
  OptionRules<Root> rules = {};
};

/// The options of one object of a job.
template <typename Root>
struct OptionTable {
  std::string_view path;  ///< of the object: "framework", "workload.lora"; "": the job itself
  std::string_view of;    ///< who has them, before each help: "FSDP2"; "": every job
  std::span<const Option<Root>> options;
};

/// One option for who lists them all, whatever keeps its value.
struct ListedOption {
  const OptionInfo* info = nullptr;
  OptionValue fallback;  ///< what holds when it is left open, unless a rule says otherwise
};
struct OptionGroup {
  std::string_view name;  ///< unique: "fsdp2", "workload"
  std::string_view path, of;
  std::vector<ListedOption> options;
};

template <typename Root>
OptionGroup listed(std::string_view name, const OptionTable<Root>& table) {
  OptionGroup group{name, table.path, table.of, {}};
  const Root start{};
  for (const Option<Root>& option : table.options)
    group.options.push_back(
        {&option.info, option.access.get == nullptr ? OptionValue() : option.access.get(start)});
  return group;
}

/// Gives the options for which `is_open` holds what their rules say, in the order of the table.
template <typename Root, typename IsOpen>
void apply_rules(const OptionTable<Root>& table, Root& root, IsOpen is_open) {
  for (const Option<Root>& option : table.options)
    if (option.rules.open != nullptr && is_open(option.info.key))
      option.access.set(root, option.rules.open(root));
}

/// An option's value as part of a key: of fractions a billionth is the unit, and -1 is no value.
std::int64_t pass_number(const OptionValue& value);

/// Appends the values of the options that passes depend on.
template <typename Root>
void add_pass_numbers(const OptionTable<Root>& table, const Root& root,
                      std::vector<std::int64_t>& numbers) {
  for (const Option<Root>& option : table.options)
    if (option.info.changes_passes) numbers.push_back(pass_number(option.access.get(root)));
}

}  // namespace shardplan
