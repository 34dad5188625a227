#include "options/words.h"

#include <fmt/format.h>

#include "base/format.h"

namespace shardplan {
namespace {

/// "a, b and c" with another word for "and".
std::string listed_words(const std::vector<std::string>& words, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    out += words[i];
  }
  return out;
}

std::string as_code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

bool is_code(OptionKind kind) {
  return kind == OptionKind::choice || kind == OptionKind::dtype;
}

std::string default_of(const ListedOption& option) {
  const OptionInfo& info = *option.info;
  if (info.required) return "required";
  if (!info.default_text.empty()) return std::string(info.default_text);
  const std::string value = in_words(info, option.fallback);
  return is_code(info.kind) ? as_code(value) : value;
}

/// "`--zero-stage`, `--zero`", switches with what they say: "`--bf16` (bf16)".
std::string flags_of(const OptionInfo& option) {
  std::string flags = as_code(option.flag);
  for (const std::string_view word : words_of(option.also)) flags += ", " + as_code(word);
  for (const std::string_view word : words_of(option.switches)) {
    const std::size_t mark = word.find('=');
    flags += fmt::format(", {} ({})", as_code(word.substr(0, mark)), word.substr(mark + 1));
  }
  return flags;
}

/// The other words for choices: "; `fa2` is read as sdpa".
std::string spoken_choices(std::span<const NamedValue> choices) {
  std::string text;
  for (const NamedValue& choice : choices) {
    std::vector<std::string> words;
    for (const std::string_view word : words_of(choice.also)) words.push_back(as_code(word));
    if (!words.empty())
      text += fmt::format("; {} {} read as {}", listed_words(words, "and"),
                          words.size() > 1 ? "are" : "is", choice.name);
  }
  return text;
}

std::string meaning_of(const OptionInfo& option) {
  std::string text(option.doc.empty() ? option.help : option.doc);
  if (!option.unit.empty()) text += fmt::format(", in {}", option.unit);
  if (!option.choices.empty()) text += ": " + in_words(option.choices);
  return text + spoken_choices(option.choices);
}

}  // namespace

std::string in_words(std::span<const NamedValue> choices) {
  std::vector<std::string> names;
  for (const NamedValue& choice : choices) names.emplace_back(choice.name);
  return listed_words(names, "or");
}

std::string help_of(const OptionInfo& option) {
  std::string text(option.help);
  if (!option.unit.empty()) text += fmt::format(", in {}", option.unit);
  if (!option.choices.empty()) text += ": " + in_words(option.choices);
  return text;
}

std::string in_words(const OptionInfo& option, const OptionValue& value) {
  if (const auto* truth = std::get_if<bool>(&value))
    return !option.choices.empty() ? std::string(name_in(option.choices, *truth ? 1 : 0))
           : *truth                ? "true"
                                   : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value))
    return option.choices.empty() ? format_count(*whole)
                                  : std::string(name_in(option.choices, *whole));
  if (const auto* fraction = std::get_if<double>(&value)) return fmt::format("{}", *fraction);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*texts, ", "));
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    return fmt::format("{}", fmt::join(*numbers, ", "));
  return {};
}

std::string markdown_of(const OptionGroup& group) {
  std::string text = "| key | flag | meaning | default |\n|---|---|---|---|\n";
  for (const ListedOption& option : group.options)
    text += fmt::format("| `{}` | {} | {} | {} |\n", option.info->key, flags_of(*option.info),
                        meaning_of(*option.info), default_of(option));
  return text;
}

}  // namespace shardplan
