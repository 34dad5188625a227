#include "yaml/document.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/diagnostic.h"

namespace shardplan {
namespace {

constexpr int kDeepestYaml = 20;
constexpr int kMostNodes = 20'000;

TextPosition position_of(const YAML::Mark& mark) {
  return mark.is_null() ? TextPosition{} : TextPosition{mark.line + 1, mark.column + 1};
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '_'; });
}

/// PyYAML's pattern for decimal integers: an optional sign, no leading zero.
std::optional<std::int64_t> integer_in(std::string text) {
  const std::string_view body = std::string_view(text).substr(text[0] == '-' || text[0] == '+');
  if (!digits(body) || body[0] == '_' || (body.size() > 1 && body[0] == '0')) return std::nullopt;
  std::erase(text, '_');
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// PyYAML's pattern for floats: a point is a must, and so is the exponent's sign.
std::optional<double> number_in(const std::string& text) {
  const std::size_t point = text.find('.');
  const std::size_t exponent = text.find_first_of("eE");
  if (point == std::string::npos || (exponent != std::string::npos && exponent < point))
    return std::nullopt;
  if (exponent != std::string::npos &&
      (exponent + 1 >= text.size() || (text[exponent + 1] != '-' && text[exponent + 1] != '+')))
    return std::nullopt;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

Json scalar(const YAML::Node& node) {
  const std::string text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || one_of(text, {"~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return true;
  if (one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}))
    return false;
  if (const auto value = integer_in(text)) return *value;
  if (const auto value = number_in(text)) return *value;
  return text;
}

class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Json convert(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kDeepestYaml || ++nodes_ > kMostNodes)
      fail(node.Mark(), path, "more than a configuration has",
           fmt::format("at most {} levels and {} values", kDeepestYaml, kMostNodes));
    switch (node.Type()) {
      case YAML::NodeType::Map:
        return mapping(node, path, depth);
      case YAML::NodeType::Sequence: {
        Json list = Json::array();
        for (std::size_t i = 0; i < node.size(); ++i) {
          const std::string here = fmt::format("{}[{}]", path, i);
          positions.add(here, position_of(node[i].Mark()));
          list.push_back(convert(node[i], here, depth + 1));
        }
        return list;
      }
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        break;
    }
    return nullptr;
  }

  KeyPositions positions;
  std::vector<std::string> repeated;

 private:
  Json mapping(const YAML::Node& node, const std::string& path, int depth) {
    Json object = Json::object();
    for (const auto& pair : node) {
      if (!pair.first.IsScalar()) fail(pair.first.Mark(), path, "found a key that is no text", "");
      const std::string name = pair.first.Scalar();
      const std::string here = path.empty() ? name : path + "." + name;
      if (object.contains(name)) repeated.push_back(here);
      positions.add(here, position_of(pair.first.Mark()));
      object[name] = convert(pair.second, here, depth + 1);
    }
    return object;
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& path, std::string message,
                         std::string expected) const {
    throw InputError({.file = file_,
                      .key = path,
                      .message = std::move(message),
                      .expected = std::move(expected),
                      .position = position_of(mark),
                      .rule = "yaml.syntax"_rule});
  }

  const std::string& file_;
  int nodes_ = 0;
};

}  // namespace

YamlDocument parse_yaml(std::string_view text, const std::string& file) {
  constexpr std::size_t kLargestYaml = 1'000'000;
  if (text.size() > kLargestYaml)
    throw InputError({.file = file,
                      .message = fmt::format("the document has {} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", kLargestYaml)});
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    Converter converter(file);
    Json value = converter.convert(root, "", 0);
    return {std::move(value), std::move(converter.positions), std::move(converter.repeated)};
  } catch (const YAML::Exception& e) {
    throw InputError({.file = file,
                      .message = say("not valid YAML: {}", e.msg),
                      .position = position_of(e.mark),
                      .rule = "yaml.syntax"_rule});
  }
}

}  // namespace shardplan
