#include "cli/spoken_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "job/fields.h"
#include "options/option.h"

namespace shardplan::cli {
namespace {

/// "--seq-len=8k": the name and, if there is one, the value.
struct Typed {
  std::string name;
  std::optional<std::string> value;
};

Typed typed(const std::string& argument) {
  const std::size_t mark = argument.find('=');
  Typed out{argument.substr(0, mark), std::nullopt};
  if (mark != std::string::npos) out.value = argument.substr(mark + 1);
  std::replace(out.name.begin(), out.name.end(), '_', '-');
  return out;
}

/// A flag of the command, and the value that it was said with.
struct Meant {
  std::string flag;
  std::optional<std::string> value;
};

std::optional<Meant> said_by(const JobField& field, const std::string& name) {
  for (const std::string_view word : words_of(field.also))
    if (word == name) return Meant{std::string(field.flag), std::nullopt};
  for (const std::string_view word : words_of(field.switches)) {
    const std::size_t mark = word.find('=');
    if (word.substr(0, mark) == name)
      return Meant{std::string(field.flag), std::string(word.substr(mark + 1))};
  }
  return std::nullopt;
}

bool has(const CLI::App& command, const std::string& flag) {
  return command.get_option_no_throw(flag) != nullptr;
}

std::optional<Meant> meant(const std::string& name, const CLI::App& command) {
  if (has(command, name)) return Meant{name, std::nullopt};
  for (const JobField& field : job_fields())
    if (auto said = said_by(field, name); said && has(command, said->flag)) return said;
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& name, const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
  const std::size_t own = known.size();
  for (const JobField& field : job_fields()) {
    if (!has(command, std::string(field.flag))) continue;
    for (const std::string_view word : words_of(field.also)) known.emplace_back(word);
  }
  std::string near = nearest(name, std::span<const std::string>(known));
  if (near.empty()) near = with_words(name, known);
  if (const auto said = meant(near, command); said && own > 0) near = said->flag;
  throw UnknownFlag(command, name, near);
}

/// "--serve" is vLLM unless --engine names another.
bool gives_way(const Meant& said, const std::string& name,
               const std::vector<std::string>& arguments) {
  constexpr std::string_view kServe = "--serve";
  return name == kServe && std::ranges::any_of(arguments, [&](const std::string& argument) {
           return typed(argument).name == said.flag;
         });
}

bool is_boolean(const std::string& flag) {
  return std::ranges::any_of(job_fields(), [&](const JobField& field) {
    return field.flag == flag && field.kind == JobField::Kind::boolean;
  });
}

bool is_truth(const std::string& word) {
  const std::string plain = normalized(word);
  return std::ranges::any_of(std::array{"true", "false", "yes", "no", "on", "off", "0", "1"},
                             [&](const char* truth) { return plain == truth; });
}

/// Whether a switch comes with a truth of its own.
bool has_truth_of_its_own(const Typed& flag, const std::string* next) {
  const std::string* word = flag.value ? &*flag.value : next;
  return word != nullptr && is_truth(*word);
}

}  // namespace

UnknownFlag::UnknownFlag(const CLI::App& command, const std::string& typed_flag,
                         const std::string& near)
    : CLI::ExtrasError(
          command.get_name(),
          {near.empty() ? typed_flag : fmt::format("{}; did you mean '{}'?", typed_flag, near)}),
      flag(typed_flag),
      nearest(near) {}

std::vector<std::string> spoken_flags(const std::vector<std::string>& arguments,
                                      const CLI::App& command) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!argument.starts_with("--") || argument.size() == 2) {
      out.push_back(argument);
      continue;
    }
    const std::string* next = i + 1 < arguments.size() ? &arguments[i + 1] : nullptr;
    const Typed flag = typed(argument);
    const auto said = meant(flag.name, command);
    if (!said) refuse(argument.substr(0, argument.find('=')), command);
    if (said->value) {  // --bf16, --bf16 true, --bf16=false
      const bool has_truth = has_truth_of_its_own(flag, next);
      const std::string truth = !has_truth ? "true" : normalized(flag.value ? *flag.value : *next);
      if (has_truth && !flag.value) ++i;
      if (truth == "false" || truth == "no" || truth == "off" || truth == "0") continue;
      if (gives_way(*said, flag.name, arguments)) continue;
      out.push_back(said->flag);
      out.push_back(*said->value);
      continue;
    }
    out.push_back(flag.value ? said->flag + "=" + *flag.value : said->flag);
    if (!flag.value && is_boolean(said->flag) && (next == nullptr || !is_truth(*next)))
      out.emplace_back("true");
  }
  return out;
}

}  // namespace shardplan::cli
