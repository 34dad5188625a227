#include "import/kinds/hydra_config.h"

#include <algorithm>

#include "base/diagnostic.h"
#include "import/keys.h"

namespace shardplan::importing {
namespace {

constexpr int kLongestChain = 20;

/// The key of "${a.b}" or "${oc.select:a.b,otherwise}"; "" for another text.
std::string referred(const Json& value) {
  if (!value.is_string()) return {};
  std::string text = value.get<std::string>();
  if (!text.starts_with("${") || !text.ends_with("}")) return {};
  text = text.substr(2, text.size() - 3);
  constexpr std::string_view kSelect = "oc.select:";
  if (text.starts_with(kSelect)) text.erase(0, kSelect.size());
  const std::string key = text.substr(0, text.find(','));
  return key.find(':') == std::string::npos ? key : std::string();
}

}  // namespace

const Json* HydraConfig::said(std::string_view path) const {
  std::string at(path);
  for (int link = 0; link < kLongestChain; ++link) {
    const Json* value = value_below(document_.value, at);
    // "": of a script's variable that only its caller knows.
    if (value == nullptr || value->is_null()) return nullptr;
    for (const char* silent : {"???", "null", ""})
      if (*value == silent) return nullptr;
    const bool refers =
        value->is_string() && value->get_ref<const std::string&>().starts_with("${");
    if (!refers) return value;
    std::string next = referred(*value);
    if (next.empty()) return nullptr;
    if (next.starts_with(".")) next = at.substr(0, at.rfind('.')) + next;  // beside this key
    at = std::move(next);
  }
  return nullptr;
}

Origin HydraConfig::origin(std::string_view path) const {
  return {document_.file, std::string(path), document_.positions.find(std::string(path)).line};
}

std::int64_t HydraConfig::integer(std::string_view path, std::int64_t otherwise) const {
  const Json* value = said(path);
  return value == nullptr ? otherwise
                          : Key(document_, std::string(path), *value, "", recipe_).integer(-1);
}

double HydraConfig::number(std::string_view path, double otherwise) const {
  const Json* value = said(path);
  return value == nullptr ? otherwise
                          : Key(document_, std::string(path), *value, "", recipe_).number();
}

bool HydraConfig::flag(std::string_view path, bool otherwise) const {
  const Json* value = said(path);
  return value == nullptr ? otherwise
                          : Key(document_, std::string(path), *value, "", recipe_).flag();
}

std::string HydraConfig::text(std::string_view path, std::string_view otherwise) const {
  const Json* value = said(path);
  return value == nullptr ? std::string(otherwise)
                          : Key(document_, std::string(path), *value, "", recipe_).text();
}

void HydraConfig::came_from(const std::string& pointer, std::string_view path) const {
  if (said(path) != nullptr) recipe_.origins[pointer] = origin(path);
}

void HydraConfig::refuse(std::string_view path, std::string message, std::string expected) const {
  const Origin where = origin(path);
  throw InputError({.file = where.file,
                    .key = std::string(path),
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .position = {where.line, where.line > 0 ? 1 : 0}});
}

}  // namespace shardplan::importing
