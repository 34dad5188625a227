#include "export/yaml_text.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

/// PyYAML takes 1e-05 for a text: a number needs its point.
std::string scalar(const Json& value) {
  std::string text = value.dump();
  if (!value.is_number_float() || text.find('.') != std::string::npos) return text;
  const std::size_t exponent = text.find('e');
  return exponent == std::string::npos ? text : text.insert(exponent, ".0");
}

void write(std::string& text, const Json& value, std::size_t depth) {
  for (const auto& [key, below] : value.items()) {
    text += std::string(depth * 2, ' ') + key + ":";
    if (below.is_object() && !below.empty()) {
      text += "\n";
      write(text, below, depth + 1);
    } else if (below.is_structured()) {
      text += " " + below.dump() + "\n";
    } else {
      text += " " + scalar(below) + "\n";
    }
  }
}

}  // namespace

std::string yaml_text(const Json& document) {
  std::string text;
  write(text, document, 0);
  return text;
}

}  // namespace shardplan
