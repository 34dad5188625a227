#include "import/kinds/hydra_references.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "import/document.h"

namespace shardplan::importing {
namespace {

constexpr int kDeepestReference = 20;
constexpr int kMostSteps = 20'000;  ///< of a whole configuration

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool is_reference(std::string_view text) {
  return text.starts_with("${") && text.ends_with('}') && text.size() > 3;
}

class Resolver {
 public:
  explicit Resolver(const Json& whole) : whole_(whole) {}

  /// `at`: the path of the key that has the text.
  std::optional<Json> value_of(std::string_view text, const std::string& at, int depth) {
    if (depth > kDeepestReference || ++steps_ > kMostSteps || !is_reference(text))
      return std::nullopt;
    const std::string_view inside = text.substr(2, text.size() - 3);
    const std::size_t colon = inside.find(':');
    if (colon != inside.npos && inside.substr(0, colon).find('.') == inside.npos)
      return computed(inside.substr(0, colon), inside.substr(colon + 1), at, depth);
    const std::string path = absolute(inside, at);
    const Json* found = value_below(whole_, path);
    if (found == nullptr) return std::nullopt;
    if (found->is_object()) return std::nullopt;  // blocks are read where they are
    if (!found->is_string()) return *found;
    const auto& next = found->get_ref<const std::string&>();
    return is_reference(next) ? value_of(next, path, depth + 1) : *found;
  }

 private:
  /// ".b" is beside the key that refers, "..b" beside the block around that.
  static std::string absolute(std::string_view path, std::string_view at) {
    if (!path.starts_with('.')) return std::string(path);
    while (path.starts_with('.')) {
      path.remove_prefix(1);
      const std::size_t point = at.rfind('.');
      at = at.substr(0, point == at.npos ? 0 : point);
    }
    return at.empty() ? std::string(path) : std::string(at) + "." + std::string(path);
  }

  std::optional<double> number(std::string_view text, const std::string& at, int depth) {
    const Json parsed = Json::parse(text, nullptr, false);
    if (parsed.is_number()) return parsed.get<double>();
    const auto found = value_of(text, at, depth + 1);
    return found && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  }

  std::optional<Json> computed(std::string_view how, std::string_view of, const std::string& at,
                               int depth) {
    std::size_t comma = of.npos;
    int open = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] == '{') ++open;
      if (of[i] == '}') --open;
      if (of[i] == ',' && open == 0 && comma == of.npos) comma = i;
    }
    if (comma == of.npos) return std::nullopt;
    const auto a = number(without_blanks(of.substr(0, comma)), at, depth);
    const auto b = number(without_blanks(of.substr(comma + 1)), at, depth);
    if (!a || !b) return std::nullopt;
    const std::optional<double> value = how == "mul"              ? *a * *b
                                        : how == "add"            ? *a + *b
                                        : how == "max"            ? std::max(*a, *b)
                                        : how == "min"            ? std::min(*a, *b)
                                        : how == "div" && *b != 0 ? std::optional(*a / *b)
                                                                  : std::nullopt;
    if (!value) return std::nullopt;
    constexpr double kLargest = 9e15;  // what a double counts exactly
    if (*value == std::floor(*value) && std::abs(*value) < kLargest)
      return static_cast<std::int64_t>(*value);
    return *value;
  }

  const Json& whole_;
  int steps_ = 0;
};

void resolve_in(Json& value, const std::string& at, Resolver& resolver) {
  if (value.is_object())
    for (auto& [key, below] : value.items())
      resolve_in(below, at.empty() ? key : at + "." + key, resolver);
  if (!value.is_string()) return;
  if (auto found = resolver.value_of(value.get<std::string>(), at, 0)) value = std::move(*found);
}

}  // namespace

void resolve_references(Json& whole) {
  const Json original = whole;
  Resolver resolver(original);
  resolve_in(whole, "", resolver);
}

}  // namespace shardplan::importing
