#include "report/messages.h"

namespace shardplan::report {

std::string Messages::text(const Text& text) const {
  WordStore::Values values;
  for (const Argument& a : text.arguments) values.emplace_back(a.name, cell(a.value));
  return store_.message(text.key, values);
}

std::string Messages::text(const std::string& key) const {
  return store_.message(key);
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

}  // namespace shardplan::report
