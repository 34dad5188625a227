// shardplan: will it fit, how fast will it run, what would change that?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "cli/commands.h"

namespace shardplan::cli {
namespace {

constexpr const char* kAbout =
    "Predicts memory, traffic and time of a training step before you rent the GPUs.\n"
    "Example: shardplan fit llama-2-7b 4xA100-40GB";

/// What is wrong with the command's name, or "": CLI11 would call it a stray argument.
std::string command_error(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return {};
  return to_string({.message = fmt::format("unknown command '{}'", argv[1]),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = nearest(argv[1], std::span<const std::string>(names))});
}

Exit usage_error(std::string_view message) {
  fmt::print(stderr, "shardplan: {}\nRun with --help for an example.\n", message);
  return Exit::usage;
}

Exit run(int argc, char** argv) {
  CLI::App app(kAbout, "shardplan");
  app.set_version_flag("--version", SHARDPLAN_VERSION);
  app.require_subcommand(1);
  Run chosen;
  add_fit(app, chosen);
  add_model(app, chosen);
  add_estimate(app, chosen);
  add_compare(app, chosen);
  add_max(app, chosen);
  add_search(app, chosen);
  add_export(app, chosen);
  add_accuracy(app, chosen);
  add_simulate(app, chosen);
  add_calibrate(app, chosen);
  add_report(app, chosen);
  add_catalog(app, chosen);
  add_lint(app, chosen);
  try {
    if (const std::string error = command_error(app, argc, argv); !error.empty())
      return usage_error(error);
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return Exit::done;
  } catch (const CLI::ParseError& e) {
    return usage_error(e.what());
  }
  return chosen();
}

}  // namespace
}  // namespace shardplan::cli

int main(int argc, char** argv) {
  using shardplan::cli::Exit;
  try {
    return static_cast<int>(shardplan::cli::run(argc, argv));
  } catch (const shardplan::InputError& e) {
    fmt::print(stderr, "shardplan: {}\n", e.what());
    return static_cast<int>(Exit::bad_input);
  } catch (const shardplan::OverflowError& e) {
    fmt::print(stderr, "shardplan: the job is too large to compute: {}\n", e.what());
    return static_cast<int>(Exit::bad_input);
  } catch (const std::exception& e) {
    fmt::print(stderr, "shardplan: internal error: {}\n", e.what());
    return static_cast<int>(Exit::internal);
  }
}
