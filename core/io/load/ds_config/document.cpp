#include "load/ds_config/document.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/diagnostic.h"
#include "json/hjson.h"
#include "json/python_json.h"

namespace shardplan {
namespace {

/// What a reader makes of the text: a document, or why it gives none.
struct Attempt {
  Json json;
  std::optional<InputError> error;
};

Attempt attempt(Json (*read)(std::string_view, const std::string&), std::string_view text,
                const std::string& file) {
  try {
    return {read(text, file), std::nullopt};
  } catch (const InputError& error) {
    return {nullptr, error};
  }
}

bool is_repetition(const Attempt& attempt) {
  return attempt.error && attempt.error->diagnostic().rule == "json.duplicate-key"_rule;
}

}  // namespace

bool has_auto(const Json& document) {
  if (document.is_string()) return document == "auto";
  return document.is_structured() && std::any_of(document.begin(), document.end(), has_auto);
}

AutoResolver usual_resolver(const Json& document) {
  return has_auto(document) ? AutoResolver::hf_trainer : AutoResolver::none;
}

DsDocument read_ds_document(std::string_view text, const std::string& file,
                            std::optional<AutoResolver> said) {
  Attempt hjson = attempt(parse_hjson, text, file);
  Attempt python = attempt(parse_python_json, text, file);
  const bool filled_in =
      said ? *said != AutoResolver::none : has_auto(python.error ? hjson.json : python.json);
  if (filled_in && !python.error)
    return {std::move(python.json), is_repetition(hjson) ? DsText::repeated : DsText::plain};
  // The places of nlohmann/json's errors are those of the first thing that is no JSON.
  if ((filled_in && said) || (hjson.error && !is_repetition(hjson)))
    throw python.error ? *python.error : *hjson.error;
  if (hjson.error) throw *hjson.error;
  if (python.error) return {std::move(hjson.json), DsText::hjson};
  // The same values, with numbers as they are written; Infinity is a text to hjson.
  const bool same = hjson.json == python.json;
  return {same ? std::move(python.json) : std::move(hjson.json), DsText::plain};
}

}  // namespace shardplan
