#include "cli/commands.h"

#include <algorithm>
#include <array>

namespace shardplan::cli {
namespace {

struct Command {
  std::string_view name;
  void (*add)(CLI::App& app, Run& run);
};

constexpr std::array kCommands{
    Command{"fit", add_fit},           Command{"model", add_model},
    Command{"estimate", add_estimate}, Command{"compare", add_compare},
    Command{"max", add_max},           Command{"search", add_search},
    Command{"export", add_export},     Command{"accuracy", add_accuracy},
    Command{"simulate", add_simulate}, Command{"calibrate", add_calibrate},
    Command{"table", add_table},       Command{"report", add_report},
    Command{"catalog", add_catalog},   Command{"lint", add_lint},
    Command{"import", add_import},     Command{"probe", add_probe},
    Command{"anchor", add_anchor},     Command{"completion", add_completion},
};

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

void add_commands(CLI::App& app, Run& run, std::string_view asked, bool in_words) {
  if (asked == "fit" && in_words) return add_fit_in_words(app, run);
  const auto known = [&](const Command& command) { return command.name == asked; };
  const bool one = std::any_of(kCommands.begin(), kCommands.end(), known);
  for (const Command& command : kCommands)
    if (!one || known(command)) command.add(app, run);
}

}  // namespace shardplan::cli
