#include "toml/document.h"

#include <fmt/format.h>

#include <sstream>

// toml++ 3.3 only asserts that a header's key begins as one can (parser.inl parse_key): a release
// build would go on with "[{" as if that could not be. It lets its assertions be replaced.
namespace shardplan {
struct ImpossibleToml {};
[[noreturn]] inline void stop_parsing() {
  throw ImpossibleToml{};
}
}  // namespace shardplan
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) (static_cast<bool>(expr) ? void() : ::shardplan::stop_parsing())
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "base/diagnostic.h"
#include "json/syntax_reason.h"

namespace shardplan {
namespace {

constexpr std::size_t kLargestToml = 1'000'000;

TextPosition place_of(const toml::source_region& source) {
  return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

class TomlConverter {
 public:
  Json convert(const toml::node& node, const std::string& path) {
    if (const toml::table* table = node.as_table()) return object(*table, path);
    if (const toml::array* array = node.as_array()) {
      Json list = Json::array();
      for (std::size_t i = 0; i < array->size(); ++i)
        list.push_back(convert((*array)[i], fmt::format("{}[{}]", path, i)));
      return list;
    }
    return scalar(node);
  }

  KeyPositions positions;

 private:
  Json object(const toml::table& table, const std::string& path) {
    Json made = Json::object();
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      const std::string here = path.empty() ? name : path + "." + name;
      positions.add(here, place_of(key.source()));
      made[name] = convert(value, here);
    }
    return made;
  }

  static Json scalar(const toml::node& node) {
    if (const auto value = node.value_exact<bool>()) return *value;
    if (const auto value = node.value_exact<std::int64_t>()) return *value;
    if (const auto value = node.value_exact<double>()) return *value;
    if (const auto value = node.value_exact<std::string>()) return *value;
    std::ostringstream text;
    node.visit([&](const auto& date) {
      if constexpr (toml::is_date<decltype(date)> || toml::is_time<decltype(date)> ||
                    toml::is_date_time<decltype(date)>)
        text << date.get();
    });
    return text.str();
  }
};

}  // namespace

TomlDocument parse_toml(std::string_view text, const std::string& file) {
  if (text.size() > kLargestToml)
    throw InputError({.file = file,
                      .message = fmt::format("the document has {} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", kLargestToml)});
  try {
    const toml::table root = toml::parse(text, file);
    TomlConverter converter;
    Json value = converter.convert(root, "");
    return {std::move(value), std::move(converter.positions)};
  } catch (const toml::parse_error& e) {
    throw InputError({.file = file,
                      .message = say("not valid TOML: {}", toml_reason(e.description())),
                      .position = place_of(e.source())});
  } catch (const ImpossibleToml&) {
    throw InputError({.file = file,
                      .message = "not valid TOML: a key is missing or begins with a wrong sign",
                      .expected = "tables named by letters, digits, '-', '_' or quoted text"});
  }
}

}  // namespace shardplan
