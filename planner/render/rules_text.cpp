#include "render/rules_text.h"

#include <fmt/format.h>

#include "base/format.h"
#include "lint/registry.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// In a table of Markdown, "|" ends a cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string rules_text() {
  std::string text;
  int rules = 0;
  for (const RuleFamily& family : rule_families()) {
    TextTable table({Align::left, Align::left, Align::left});
    for (const Rule& rule : family.rules)
      table.add({std::string(rule.id.text()), std::string(name_of(rule.severity)),
                 std::string(rule.title)});
    rules += static_cast<int>(family.rules.size());
    text += std::string(family.name) + "\n" + table.text() + "\n";
  }
  return text + fmt::format("{} rules; shardplan lint --explain RULE explains one\n", rules);
}

std::string rules_markdown() {
  std::string text;
  for (const RuleFamily& family : rule_families()) {
    text += fmt::format("{}## {}\n\n| rule | | what is wrong | what to do |\n|---|---|---|---|\n",
                        text.empty() ? "" : "\n", family.name);
    for (const Rule& rule : family.rules)
      text += fmt::format("| `{}` | {}{} | {} | {} |\n", rule.id.text(), name_of(rule.severity),
                          rule.repair != nullptr ? ", `--fix`" : "", cell(rule.title),
                          cell(rule.advice));
  }
  return text;
}

std::string rule_text(const Rule& rule) {
  return fmt::format("{} ({}{})\n", rule.id.text(), name_of(rule.severity),
                     rule.repair != nullptr ? ", repaired by --fix" : "") +
         wrapped(fmt::format("{}. {}", rule.title, rule.explanation), "  ", "  ") +
         wrapped(fmt::format("{}", rule.advice), "  What to do: ", "    ") +
         wrapped(fmt::format("{}", rule.source), "  Source: ", "    ");
}

}  // namespace shardplan
