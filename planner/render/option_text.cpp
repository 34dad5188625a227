#include "render/option_text.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "options/tables.h"
#include "options/words.h"
#include "plan/precision_presets.h"
#include "render/table.h"
#include "save/options.h"

namespace shardplan {
namespace {

/// What each framework can divide a model by.
std::string division_markdown() {
  std::string text = "| framework |";
  std::string line = "|---|";
  for (const std::string_view degree : kDegreeNames) {
    text += fmt::format(" `{}` |", degree);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const FrameworkTraits* framework : all_frameworks()) {
    text += fmt::format("| `{}` |", framework->name.get());
    for (std::size_t i = 0; i < kDegreeNames.size(); ++i) {
      const Support support = framework->degrees.of(static_cast<Degree>(i));
      text += support == Support::yes       ? " yes |"
              : support == Support::not_yet ? " not yet |"
                                            : " – |";
    }
    text += "\n";
  }
  return text;
}

std::string presets_markdown() {
  std::string text =
      "| preset | parameters | computing | gradients | master | states "
      "|\n|---|---|---|---|---|---|\n";
  for (const PrecisionPreset& p : kPrecisionPresets)
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", p.name, name_of(p.params),
                        name_of(p.compute), name_of(p.gradients), p.master ? "fp32" : "–",
                        name_of(p.states));
  return text;
}

std::map<std::string, std::string, std::less<>> tables() {
  std::map<std::string, std::string, std::less<>> all{{"division", division_markdown()},
                                                      {"presets", presets_markdown()}};
  for (const OptionGroup& group : all_option_groups())
    if (!group.options.empty()) all.emplace(group.name, markdown_of(group));
  return all;
}

std::string title_of(const OptionGroup& group) {
  std::string title(group.path.empty() ? std::string_view("job") : group.path);
  if (!group.of.empty()) title += fmt::format(" ({})", group.of);
  return title;
}

}  // namespace

std::string options_text() {
  std::string text;
  for (const OptionGroup& group : all_option_groups()) {
    if (group.options.empty()) continue;
    TextTable table({Align::left, Align::left, Align::left});
    for (const ListedOption& option : group.options)
      table.add(
          {std::string(option.info->key), std::string(option.info->flag), help_of(*option.info)});
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", title_of(group), table.text());
  }
  return text;
}

Json options_json() {
  Json groups = Json::array();
  for (const OptionGroup& group : all_option_groups()) {
    Json options = Json::array();
    for (const ListedOption& option : group.options) {
      const OptionInfo& info = *option.info;
      Json json{{"key", info.key}, {"help", info.help}};
      if (!info.flag.empty()) json["flag"] = info.flag;
      if (!info.unit.empty()) json["unit"] = info.unit;
      for (const NamedValue& choice : info.choices) json["choices"].push_back(choice.name);
      if (is_said(option.fallback)) json["default"] = json_of(info, option.fallback);
      if (info.required) json["required"] = true;
      options.push_back(std::move(json));
    }
    groups.push_back(Json{{"name", group.name}, {"path", group.path}, {"options", options}});
  }
  return Json{{"schema", "shardplan.options/1"}, {"groups", std::move(groups)}};
}

std::string with_option_tables(const std::string& page, const std::string& file) {
  constexpr std::string_view kBegin = "<!-- options: ", kName = " -->\n", kEnd = "<!-- end -->";
  auto left = tables();
  const auto fail = [&](std::string key, const char* message) {
    throw InputError({.file = file, .key = std::move(key), .message = message});
  };
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = page.find(kBegin, at);
    if (begin == std::string::npos) break;
    const std::size_t name_end = page.find(kName, begin);
    const std::size_t end = page.find(kEnd, begin);
    if (name_end == std::string::npos || end == std::string::npos || end < name_end)
      fail(page.substr(begin, 40), "a table without an end");
    const std::string name = page.substr(begin + kBegin.size(), name_end - begin - kBegin.size());
    const auto table = left.extract(name);
    if (table.empty()) fail(name, "no such table, or a second one of it");
    out += page.substr(at, name_end + kName.size() - at) + table.mapped();
    at = end;
  }
  if (!left.empty()) fail(left.begin()->first, "the page lacks this table");
  return out + page.substr(at);
}

}  // namespace shardplan
