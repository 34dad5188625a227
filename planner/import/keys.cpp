#include "import/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/ascii.h"
#include "base/nearest.h"
#include "json/reader.h"

namespace shardplan::importing {
namespace {

std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() ? std::optional(parsed.get<double>()) : std::nullopt;
}

const KeyRule* rule_of(std::string_view path, std::initializer_list<const KeyTable*> tables) {
  for (const KeyTable* table : tables)
    for (const KeyRule& rule : table->rules)
      if (rule.key == path) return &rule;
  return nullptr;
}

/// Whether a rule is about something in the object at `path`: a pattern of ignored keys does not
/// hide it.
bool is_above_rules(std::string_view path, std::initializer_list<const KeyTable*> tables) {
  return std::ranges::any_of(tables, [&](const KeyTable* table) {
    return std::ranges::any_of(table->rules, [&](const KeyRule& rule) {
      return rule.key.size() > path.size() && rule.key.starts_with(path) &&
             rule.key[path.size()] == '.';
    });
  });
}

const IgnoredKeys* ignored_of(std::string_view path,
                              std::initializer_list<const KeyTable*> tables) {
  const auto matches = [&](std::string_view pattern) {
    return pattern.ends_with('*') ? path.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : pattern == path;
  };
  for (const KeyTable* table : tables)
    for (const IgnoredKeys& group : table->ignored)
      if (std::any_of(group.keys.begin(), group.keys.end(), matches)) return &group;
  return nullptr;
}

/// The key with a rule that was meant: one or two letters away.
std::string meant(std::string_view path, std::initializer_list<const KeyTable*> tables) {
  constexpr std::size_t kShortest = 5;  // shorter ones are near to too many
  constexpr std::size_t kLongest = 100;
  if (path.size() < kShortest || path.size() > kLongest) return {};
  for (const KeyTable* table : tables)
    for (const KeyRule& rule : table->rules) {
      if (is_digit(path.back()) && path.substr(0, path.size() - 1) == rule.key) continue;  // beta1
      const std::size_t longer = std::max(rule.key.size(), path.size());
      const std::size_t apart = longer - std::min(rule.key.size(), path.size());
      if (apart > 3 || spelling_distance(rule.key, path) > (longer < 12 ? 1U : 2U)) continue;
      return std::string(rule.key);
    }
  return {};
}

/// Words in names of keys on which memory depends in every trainer that has them.
constexpr std::array<std::string_view, 18> kTelling{
    "lora",   "quant",    "4bit",    "8bit",       "fp8",     "freeze",
    "frozen", "unfreeze", "tune_",   "peft",       "shard",   "parallel",
    "galore", "offload",  "max_len", "group_size", "experts", "recompute"};

/// Whether memory may depend on an unknown key: by its name, and it is not off.
bool is_telling(std::string_view path, const Json& value) {
  const std::string text = value.is_string() ? lower(value.get<std::string>()) : value.dump();
  for (const char* off : {"", "false", "0", "none", "null", "no", "off", "[]", "{}"})
    if (text == off) return false;
  const std::string name = lower(std::string(path.substr(path.rfind('.') + 1)));
  return std::ranges::any_of(
      kTelling, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

/// What has no value that an estimate could go by: less of it would say that too much fits.
bool decides_memory(std::string_view field) {
  return field == "/workload/micro_batch" || field == "/workload/sequence_length";
}

class Walk {
 public:
  Walk(const Document& document, std::initializer_list<const KeyTable*> tables, Recipe& recipe)
      : document_(document), tables_(tables), recipe_(recipe) {}

  void visit(const Json& value, const std::string& path) {
    if (value.is_null()) return;  // the same as an absent key
    if (path.empty()) return below(value, path);
    if (const KeyRule* rule = rule_of(path, tables_)) {
      Key key(document_, path, value, rule->field, recipe_);
      if (document_.unset.contains(path)) return without_value(key, rule->field);
      rule->read(key);
      if (!key.said()) key.took("");
      return;
    }
    if (value.is_object() && is_above_rules(path, tables_)) return below(value, path);
    if (const IgnoredKeys* group = ignored_of(path, tables_)) {
      Key(document_, path, value, "", recipe_).ignore(std::string(group->reason));
      return;
    }
    if (value.is_object() && !value.empty()) return below(value, path);
    unknown(value, path);
  }

 private:
  void below(const Json& object, const std::string& path) {
    if (!object.is_object()) return;
    for (const auto& [name, value] : object.items())
      visit(value, path.empty() ? name : path + "." + name);
  }

  void without_value(Key& key, std::string_view field) {
    if (decides_memory(field)) recipe_.unset.emplace_back(std::string(field), key.origin());
    key.warn("its value is a variable that the script does not set: left out");
  }

  void unknown(const Json& value, const std::string& path) {
    Key key(document_, path, value, "", recipe_);
    if (std::string near = meant(path, tables_); !near.empty())
      key.refuse("unknown key", fmt::format("'{}' is one that is understood", near), near);
    if (is_telling(path, value))
      return key.warn("not known, and by its name memory depends on it: not estimated");
    const Origin origin = key.origin();
    recipe_.note(
        {.kind = Note::Kind::unknown, .file = origin.file, .line = origin.line, .key = origin.key});
  }

  const Document& document_;
  std::initializer_list<const KeyTable*> tables_;
  Recipe& recipe_;
};

}  // namespace

Key::Key(const Document& document, std::string path, const Json& value, std::string_view field,
         Recipe& recipe)
    : document_(document), path_(std::move(path)), value_(value), field_(field), recipe_(recipe) {}

Origin Key::origin() const {
  if (const auto found = document_.elsewhere.find(path_); found != document_.elsewhere.end())
    return {found->second.file, found->second.key.empty() ? path_ : found->second.key,
            found->second.line};
  const bool placed = !document_.positions.empty();
  return {document_.file, path_, placed ? document_.positions.find(path_).line : 0};
}

std::int64_t Key::integer(std::int64_t least) const {
  const auto number = number_of(value_);
  constexpr double kLargest = 9e15;  // what a double counts exactly
  if (!number || *number != std::floor(*number) || std::abs(*number) > kLargest ||
      *number < static_cast<double>(least))
    refuse(fmt::format("found {}", describe(value_)),
           fmt::format("a whole number of at least {}", least));
  return static_cast<std::int64_t>(*number);
}

double Key::number() const {
  const auto number = number_of(value_);
  if (!number) refuse(fmt::format("found {}", describe(value_)), "a number");
  return *number;
}

bool Key::flag() const {
  if (value_.is_boolean()) return value_.get<bool>();
  if (value_.is_number_integer() && (value_ == 0 || value_ == 1)) return value_ == 1;
  if (value_.is_string()) {
    const std::string word = lower(value_.get<std::string>());
    if (word == "true" || word == "yes" || word == "1" || word == "on") return true;
    if (word == "false" || word == "no" || word == "0" || word == "off" || word == "none")
      return false;
  }
  refuse(fmt::format("found {}", describe(value_)), "true or false");
}

std::string Key::text() const {
  if (value_.is_string()) return value_.get<std::string>();
  if (value_.is_number() || value_.is_boolean()) return value_.dump();
  refuse(fmt::format("found {}", describe(value_)), "a text");
}

std::vector<std::string> Key::list() const {
  std::vector<std::string> out;
  if (value_.is_array()) {
    for (const Json& one : value_)
      if (one.is_string()) out.push_back(one.get<std::string>());
    return out;
  }
  const std::string whole = text();
  for (std::size_t begin = 0; begin <= whole.size();) {
    const std::size_t end = std::min(whole.find_first_of(", ", begin), whole.size());
    if (end > begin) out.push_back(whole.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

bool Key::other_is_true(std::string_view path) const {
  const Json* value = other(path);
  return value != nullptr && (*value == true || *value == "true" || *value == "True");
}

void Key::take(Json value) {
  take(std::string(field_), std::move(value));
}

void Key::take(const std::string& pointer, Json value) {
  std::string words = value.is_string() ? value.get<std::string>() : value.dump();
  constexpr std::size_t kLongestShown = 60;
  if (words.size() > kLongestShown) {
    std::size_t end = kLongestShown;
    while (end > 0 && (static_cast<unsigned char>(words[end]) >> 6) == 0b10) --end;
    words = words.substr(0, end) + "...";
  }
  std::string field = pointer.substr(pointer.starts_with('/') ? 1 : 0);
  std::replace(field.begin(), field.end(), '/', '.');
  recipe_.set(pointer, std::move(value), origin());
  note(Note::Kind::took, field + ": " + words, "");
}

void Key::took(std::string field) {
  note(Note::Kind::took, std::move(field), "");
}

void Key::ignore(std::string reason) {
  note(Note::Kind::ignored, "", std::move(reason));
}

void Key::warn(std::string reason) {
  note(Note::Kind::warning, "", std::move(reason));
}

void Key::estimate_larger(const std::string& pointer, Json value) {
  std::string name = value.is_object() ? value.value("name", "") : value.dump();
  recipe_.set(pointer, std::move(value), origin());
  warn(fmt::format("is estimated as {}, which keeps more", name));
}

void Key::refuse(std::string message, std::string expected, std::string nearest) const {
  const Origin where = origin();
  throw InputError({.file = where.file,
                    .key = where.key,
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(nearest),
                    .position = {where.line, where.line > 0 ? 1 : 0}});
}

void Key::note(Note::Kind kind, std::string field, std::string reason) {
  said_ = true;
  const Origin where = origin();
  recipe_.note({.kind = kind,
                .file = where.file,
                .line = where.line,
                .key = where.key,
                .field = std::move(field),
                .reason = std::move(reason)});
}

void as_integer(Key& key) {
  key.take(key.integer(1));
}

void as_flag(Key& key) {
  key.take(key.flag());
}

void as_number(Key& key) {
  key.take(key.number());
}

void read_keys(const Document& document, std::initializer_list<const KeyTable*> tables,
               Recipe& recipe) {
  Walk(document, tables, recipe).visit(document.value, "");
}

}  // namespace shardplan::importing
