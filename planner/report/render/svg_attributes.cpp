#include "report/render/svg_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "embedded/files.h"

namespace shardplan::report {
namespace {

constexpr std::array<std::string_view, 6> kProperties{
    "fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight"};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty())
      parts.push_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

using Values = std::map<std::string, std::string, std::less<>>;

Values declarations(std::string_view block) {
  Values values;
  for (const std::string_view line : split(block, ';')) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    values[std::string(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
  }
  return values;
}

struct Rule {
  std::string_view element;  ///< "" for any
  std::string_view name;     ///< a class; "" for any
  Values values;
};

/// The sheet's rules below svg and those that name a colour, in order; and a light page's values.
class Sheet {
 public:
  Sheet() {
    std::string_view css = embedded_file("report/style.css");
    bool first = true;
    while (true) {
      const std::size_t open = css.find('{');
      const std::size_t close = css.find('}', open);
      if (open == css.npos || close == css.npos) break;
      std::string_view selectors = css.substr(0, open);
      if (const std::size_t comment = selectors.rfind("*/"); comment != selectors.npos)
        selectors.remove_prefix(comment + 2);
      const std::string_view block = css.substr(open + 1, close - open - 1);
      css.remove_prefix(close + 1);
      selectors = trimmed(selectors);
      if (first && selectors == ":root") {
        light_ = declarations(block);
        first = false;
      }
      for (const std::string_view selector : split(selectors, ',')) add(selector, block);
    }
  }

  std::string attributes(std::string_view element, std::string_view classes) const {
    const std::vector<std::string_view> names = split(classes, ' ');
    Values found;
    for (const Rule& rule : rules_) {
      const bool named = rule.name.empty() || std::ranges::find(names, rule.name) != names.end();
      if (!named || (!rule.element.empty() && rule.element != element)) continue;
      for (const auto& [property, value] : rule.values) found[property] = value;
    }
    std::string text;
    for (const std::string_view property : kProperties)
      if (const auto value = found.find(property); value != found.end())
        text += fmt::format(" {}=\"{}\"", property, resolved(value->second));
    return text;
  }

 private:
  void add(std::string_view selector, std::string_view block) {
    Values values = declarations(block);
    if (selector.starts_with(".c-")) {  // ".c-idle { --fill: var(--fragmentation); }"
      if (const auto fill = values.find("--fill"); fill != values.end())
        rules_.push_back({"", selector.substr(1), {{"fill", fill->second}}});
      return;
    }
    if (!selector.starts_with("svg ") || selector.find('[') != selector.npos) return;
    const std::string_view rest = trimmed(selector.substr(4));
    const std::size_t point = rest.find('.');
    rules_.push_back({rest.substr(0, point),
                      point == rest.npos ? std::string_view() : rest.substr(point + 1),
                      std::move(values)});
  }

  std::string resolved(const std::string& value) const {
    constexpr std::string_view kBegin = "var(";
    if (!value.starts_with(kBegin)) return value;
    const auto named = light_.find(value.substr(kBegin.size(), value.size() - kBegin.size() - 1));
    return named == light_.end() ? value : named->second;
  }

  std::vector<Rule> rules_;
  Values light_;
};

}  // namespace

std::string svg_attributes(std::string_view element, std::string_view classes) {
  static const Sheet sheet;
  return sheet.attributes(element, classes);
}

}  // namespace shardplan::report
