#include "words/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "embedded/files.h"
#include "embedded/json.h"
#include "json/document.h"

namespace shardplan {
namespace {

constexpr std::string_view kFolder = "words/";
/// The topic that every language has, English too.
constexpr std::string_view kReport = "/report.json";

Json topic_file(std::string_view language, std::string_view name) {
  const std::string path = std::string(kFolder) + std::string(language) + std::string(name);
  return embedded_json(path);
}

/// `words` with {name} replaced by its value.
std::string filled(std::string_view words, const WordStore::Values& values) {
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

std::vector<std::string> languages() {
  std::vector<std::string> all;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(kFolder) && file.path.ends_with(kReport))
      all.emplace_back(
          file.path.substr(kFolder.size(), file.path.size() - kFolder.size() - kReport.size()));
  return all;
}

std::optional<WordStore::Values> match_pattern(std::string_view pattern, std::string_view text) {
  WordStore::Values values;
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

WordStore::WordStore(std::string_view language) : language_(language) {
  const auto read = [](const Json& object) {
    Topic topic;
    for (const auto& [id, words] : object.items()) topic.push_back({id, words.get<std::string>()});
    return topic;
  };
  const Json report = topic_file(language, kReport);
  messages_ = sorted(read(report.at("messages")));
  if (language_ == "en") return;
  phrases_ = read(report.at("phrases"));
  const Json lint = topic_file(language, "/lint.json");
  sentences_ = sorted(read(lint.at("sentences")));
  for (const auto& [id, rule] : lint.at("rules").items()) {
    titles_.push_back({id, rule.at("title").get<std::string>()});
    explanations_.push_back({id, rule.at("explanation").get<std::string>()});
    advice_.push_back({id, rule.at("advice").get<std::string>()});
  }
  titles_ = sorted(std::move(titles_));
  explanations_ = sorted(std::move(explanations_));
  advice_ = sorted(std::move(advice_));
  window_ = sorted(read(topic_file(language, "/window.json")));
}

WordStore::Topic WordStore::sorted(Topic topic) {
  std::sort(topic.begin(), topic.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  return topic;
}

const std::string* WordStore::find(const Topic& topic, std::string_view id) {
  const auto entry =
      std::lower_bound(topic.begin(), topic.end(), id,
                       [](const Entry& e, std::string_view wanted) { return e.id < wanted; });
  return entry == topic.end() || entry->id != id ? nullptr : &entry->words;
}

std::string WordStore::message(std::string_view id, const Values& values) const {
  const std::string* words = find(messages_, id);
  if (words == nullptr)
    throw std::logic_error("no message " + std::string(id) + " in " + language_);
  return filled(*words, values);
}

std::optional<std::string> WordStore::phrase(std::string_view english) const {
  if (language_ == "en") return std::string(english);
  for (const Entry& entry : phrases_)
    if (const auto values = match_pattern(entry.id, english)) return filled(entry.words, *values);
  // "fsdp_sharding_strategy: found 'x'": a key stays as it is.
  const std::size_t end = english.find(": ");
  if (end == std::string_view::npos || english.substr(0, end).find(' ') != std::string_view::npos)
    return std::nullopt;
  if (const auto rest = phrase(english.substr(end + 2)))
    return fmt::format("{}: {}", english.substr(0, end), *rest);
  return std::nullopt;
}

std::string WordStore::say(const Said& said) const {
  const std::string* words = find(sentences_, said.id());
  if (words == nullptr) return phrase(said.text).value_or(said.text);
  if (said.values.empty()) return *words;
  Values values;  // {0}, {1}: by their place in the English pattern
  for (std::size_t i = 0; i < said.values.size(); ++i)
    values.emplace_back(std::to_string(i), say(said.values[i]));
  return filled(*words, values);
}

std::string WordStore::title_of(const Rule& rule) const {
  const std::string* words = find(titles_, rule.id.text());
  return words == nullptr ? std::string(rule.title) : *words;
}

std::string WordStore::explanation_of(const Rule& rule) const {
  const std::string* words = find(explanations_, rule.id.text());
  return words == nullptr ? std::string(rule.explanation) : *words;
}

std::string WordStore::advice_of(const Rule& rule) const {
  const std::string* words = find(advice_, rule.id.text());
  return words == nullptr ? std::string(rule.advice) : *words;
}

std::optional<std::string> WordStore::window(std::string_view english) const {
  const std::string* words = find(window_, english);
  return words == nullptr ? std::nullopt : std::optional(*words);
}

}  // namespace shardplan
