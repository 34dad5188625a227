#include "report/messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "embedded/files.h"
#include "json/document.h"

namespace shardplan::report {
namespace {

constexpr std::string_view kFolder = "messages/";
constexpr std::string_view kExtension = ".json";

using Values = std::vector<std::pair<std::string, std::string>>;

/// `words` with {name} replaced by its value.
std::string filled(std::string_view words, const Values& values) {
  std::string out;
  while (!words.empty()) {
    const std::size_t open = words.find('{');
    const std::size_t close = words.find('}', open);
    out += words.substr(0, open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    const std::string_view name = words.substr(open + 1, close - open - 1);
    const auto value =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (value == values.end())
      throw std::logic_error("nothing for the placeholder " + std::string(name));
    out += value->second;
    words.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::vector<std::string> report_languages() {
  std::vector<std::string> languages;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(kFolder) && file.path.ends_with(kExtension))
      languages.emplace_back(
          file.path.substr(kFolder.size(), file.path.size() - kFolder.size() - kExtension.size()));
  return languages;
}

std::optional<Values> match_pattern(std::string_view pattern, std::string_view text) {
  Values values;
  for (;;) {
    const std::size_t open = pattern.find('{');
    const std::string_view literal = pattern.substr(0, open);
    if (!text.starts_with(literal)) return std::nullopt;
    text.remove_prefix(literal.size());
    if (open == std::string_view::npos) return text.empty() ? std::optional(values) : std::nullopt;
    const std::size_t close = pattern.find('}', open);
    const std::string name(pattern.substr(open + 1, close - open - 1));
    pattern.remove_prefix(close + 1);
    const std::string_view next = pattern.substr(0, pattern.find('{'));
    const std::size_t end = next.empty() ? text.size() : text.find(next, 1);
    if (end == std::string_view::npos || text.empty()) return std::nullopt;
    // The last literal must reach the end of the text.
    const bool last = pattern.find('{') == std::string_view::npos && !next.empty();
    const std::size_t stop =
        last && text.ends_with(next) && text.size() > next.size() ? text.size() - next.size() : end;
    values.emplace_back(name, text.substr(0, stop));
    text.remove_prefix(stop);
  }
}

Messages::Messages(std::string_view language) : language_(language) {
  const std::string path = std::string(kFolder) + language_ + std::string(kExtension);
  const Json catalogue = parse_json(embedded_file(path), "data/" + path);
  for (const auto& [key, words] : catalogue.at("messages").items())
    messages_.push_back({key, words.get<std::string>()});
  for (const auto& [pattern, words] : catalogue.at("phrases").items())
    phrases_.push_back({pattern, words.get<std::string>()});
  if (language_ != "en") {
    const std::string lint = "lint/said." + language_ + std::string(kExtension);
    const Json said = parse_json(embedded_file(lint), "data/" + lint);
    for (const auto& [pattern, words] : said.items())
      said_.push_back({pattern, words.get<std::string>()});
  }
  const auto by_key = [](const Entry& a, const Entry& b) { return a.key < b.key; };
  std::sort(messages_.begin(), messages_.end(), by_key);
  std::sort(said_.begin(), said_.end(), by_key);
}

std::string Messages::text(const Text& text) const {
  const auto entry =
      std::lower_bound(messages_.begin(), messages_.end(), text.key,
                       [](const Entry& e, const std::string& key) { return e.key < key; });
  if (entry == messages_.end() || entry->key != text.key)
    throw std::logic_error("no message " + text.key + " in " + language_);
  Values values;
  for (const Argument& a : text.arguments) values.emplace_back(a.name, cell(a.value));
  return filled(entry->words, values);
}

std::string Messages::text(const std::string& key) const {
  return text(Text{key, {}});
}

std::string Messages::cell(const Cell& cell) const {
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  if (const auto* message = std::get_if<Text>(&cell)) return text(*message);
  if (const auto* quantity = std::get_if<Quantity>(&cell)) return to_text(*quantity);
  if (const auto* link = std::get_if<Link>(&cell)) return link->words;
  if (const auto* said = std::get_if<Phrase>(&cell))
    return phrase(said->english).value_or(said->english);
  return "";
}

std::string Messages::say(const Said& said) const {
  const auto entry =
      std::lower_bound(said_.begin(), said_.end(), said.id(),
                       [](const Entry& e, std::string_view id) { return e.key < id; });
  if (entry == said_.end() || entry->key != said.id()) return phrase(said.text).value_or(said.text);
  if (said.values.empty()) return entry->words;
  Values values;  // {0}, {1}: by their place in the English pattern
  for (std::size_t i = 0; i < said.values.size(); ++i)
    values.emplace_back(std::to_string(i), say(said.values[i]));
  return filled(entry->words, values);
}

std::optional<std::string> Messages::phrase(std::string_view english) const {
  if (language_ == "en") return std::string(english);
  for (const Entry& entry : phrases_)
    if (const auto values = match_pattern(entry.key, english)) return filled(entry.words, *values);
  return std::nullopt;
}

}  // namespace shardplan::report
