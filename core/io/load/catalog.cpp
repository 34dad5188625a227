#include "load/catalog.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/nearest.h"
#include "embedded/files.h"
#include "embedded/json.h"

namespace shardplan {
namespace {

constexpr std::string_view kFolder = "models/";
constexpr std::string_view kSuffix = ".json";

/// "meta-llama/Llama-2-7b-hf" -> "llama27bhf".
std::string key_of(std::string_view name) {
  return normalized(name.substr(name.rfind('/') + 1));
}

/// The same with the points of numbers: "opt-1.3b" and "opt-13b" are two models.
std::string pointed_key_of(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  std::string key;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    key += (begin > 0 ? "." : "") + normalized(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return key;
}

CatalogModel entry_of(const Json& j, std::string_view path) {
  CatalogModel m;
  m.name = j.at("name").get<std::string>();
  m.family =
      std::string(path.substr(kFolder.size(), path.size() - kFolder.size() - kSuffix.size()));
  m.aliases = j.at("aliases").get<std::vector<std::string>>();
  m.source = j.at("source").get<std::string>();
  m.parameters = j.at("parameters").get<std::int64_t>();
  m.unverified = j.value("unverified", false);
  m.config = j.at("config");
  return m;
}

CatalogModel entry_of(const EmbeddedModelName& row) {
  return entry_of(unpacked(row.entry), row.path);
}

std::optional<CatalogModel> find_exactly(std::string_view name) {
  for (const auto key : {pointed_key_of, key_of}) {
    const std::string wanted = key(name);
    for (const EmbeddedModelName& row : embedded_model_names())
      if (key(row.name) == wanted) return entry_of(row);
  }
  return std::nullopt;
}

/// The parts of a name between "-", without its owner; a maker's name that a checkpoint repeats
/// goes.
std::vector<std::string_view> words_of(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('-', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (normalized(words.front()) == "nvidia") words.erase(words.begin());
  return words;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), normalized(word)) != of.end();
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string name;
  for (const std::string_view word : words) name += (name.empty() ? "" : "-") + std::string(word);
  return name;
}

/// The name without the words for how a checkpoint was tuned or stored, which leave the network as
/// it is: "Llama-3.1-8B-Instruct-hf" is "Llama-3.1-8B". "base", "it" and "pt" are some at the end.
std::string untuned(std::string_view name) {
  std::vector<std::string_view> words = words_of(name);
  if (words.empty()) return "";
  words.erase(std::remove_if(words.begin() + 1, words.end(),
                             [](std::string_view word) {
                               return is_any(word, {"instruct", "chat", "hf", "bf16", "deduped"});
                             }),
              words.end());
  if (words.size() > 1 && is_any(words.back(), {"base", "it", "pt"})) words.pop_back();
  return joined(words);
}

/// The name without the words for weights of few bits, which another job trains than the name
/// without them does: "Llama-3.2-1B-bnb-4bit" is "Llama-3.2-1B".
std::string of_whole_weights(std::string_view name) {
  std::vector<std::string_view> words = words_of(name);
  while (words.size() > 1 &&
         is_any(words.back(), {"bnb", "unsloth", "4bit", "8bit", "awq", "gptq", "gguf", "int4",
                               "int8", "fp8", "nvfp4", "mxfp4"}))
    words.pop_back();
  return joined(words);
}

}  // namespace

std::optional<CatalogModel> find_model(std::string_view name) {
  if (auto found = find_exactly(name)) return found;
  const std::string plain = untuned(name);
  return plain == name.substr(name.rfind('/') + 1) ? std::nullopt : find_exactly(plain);
}

namespace {

/// Whether a name begins so as normalized() has it, and a number does not go on behind it:
/// "llama3" begins llama-3.1-8b, and not llama-30b.
bool begins_with_words(std::string_view name, std::string_view begin) {
  std::size_t end = 0;
  while (end < name.size() && normalized(name.substr(0, end)).size() < begin.size()) ++end;
  return normalized(name.substr(0, end)) == begin &&
         (end == name.size() || !is_digit(name[end]) || !is_digit(begin.back()));
}

/// "1.7b": 1.7e9; nothing for what is no size.
std::optional<double> size_of(std::string_view word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view unit = word.substr(static_cast<std::size_t>(end - word.data()));
  if (error != std::errc() || number <= 0) return std::nullopt;
  if (unit == "b" || unit == "B") return number * 1e9;
  if (unit == "m" || unit == "M") return number * 1e6;
  return std::nullopt;
}

/// "qwen3-7b": of those that are the same words and another size, the one nearest in size; "" where
/// there is none.
std::string nearest_in_size(std::string_view own, std::span<const std::string_view> names) {
  std::vector<std::string_view> words = words_of(own);
  const std::optional<double> size = words.empty() ? std::nullopt : size_of(words.back());
  if (!size || words.size() < 2) return "";
  words.pop_back();
  const std::string begin = normalized(joined(words));
  std::string_view best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string_view candidate : names) {
    std::vector<std::string_view> parts = words_of(candidate);
    const std::optional<double> other = parts.empty() ? std::nullopt : size_of(parts.back());
    if (!other) continue;
    parts.pop_back();
    const double apart = std::abs(std::log(*other / *size));
    if (apart >= least || normalized(joined(parts)) != begin) continue;
    least = apart;
    best = candidate;
  }
  return std::string(best);
}

/// "gemma3-5b": the nearest of those that begin with its words but the last; "" where less than
/// half of the letters are the same.
std::string nearest_of_family(std::string_view own, std::span<const std::string_view> names) {
  constexpr std::size_t kShortest = 3;
  std::vector<std::string_view> words = words_of(own);
  if (words.size() < 2) return "";
  words.pop_back();
  const std::string begin = normalized(joined(words));
  if (begin.size() < kShortest) return "";
  std::string_view best;
  std::size_t least = normalized(own).size() / 2 + 1;
  for (const std::string_view candidate : names) {
    const std::size_t d = spelling_distance(own, candidate);
    if (d >= least || !begins_with_words(candidate, begin)) continue;
    least = d;
    best = candidate;
  }
  return std::string(best);
}

}  // namespace

std::string nearest_model(std::string_view name) {
  if (const auto whole = find_model(of_whole_weights(name))) return whole->name;
  std::vector<std::string_view> names;
  for (const EmbeddedModelName& row : embedded_model_names())
    if (!row.alias) names.push_back(row.name);
  const std::string_view own = name.substr(name.rfind('/') + 1);
  // "llama3", "mistral": a family, of which no name is as short.
  const std::string begin = normalized(own);
  std::string_view family;
  for (const std::string_view candidate : names)
    if (begin.size() > 2 && begins_with_words(candidate, begin) &&
        (family.empty() || candidate.size() < family.size()))
      family = candidate;
  if (!family.empty()) return std::string(family);
  // "Llama-3.1-8B-Instrct": the longest name that it begins with.
  std::string_view base;
  for (const std::string_view candidate : names)
    if (const std::string known = normalized(candidate);
        known.size() > 5 && begin.starts_with(known) && candidate.size() > base.size())
      base = candidate;
  if (!base.empty()) return std::string(base);
  if (std::string sized = nearest_in_size(own, names); !sized.empty()) return sized;
  if (std::string kin = nearest_of_family(own, names); !kin.empty()) return kin;
  return nearest(own, std::span<const std::string_view>(names));
}

std::vector<CatalogModel> catalog_models() {
  std::vector<CatalogModel> all;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(kFolder)) continue;
    const Json document = embedded_json(file.path);
    for (const Json& entry : document.at("models")) all.push_back(entry_of(entry, file.path));
  }
  std::stable_sort(all.begin(), all.end(), [](const CatalogModel& a, const CatalogModel& b) {
    return a.family < b.family;
  });
  return all;
}

}  // namespace shardplan
