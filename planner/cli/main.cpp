// shardplan: will it fit, how fast will it run, what would change that?
#include <fmt/format.h>

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

/// CLI11 takes an unknown command for a stray argument; say what was meant.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  for (const std::string& name : names)
    if (name == argv[1]) return;
  const std::string near = nearest(argv[1], std::span<const std::string>(names));
  throw CLI::ExtrasError(
      fmt::format("unknown command '{}'; expected one of {}{}", argv[1], fmt::join(names, ", "),
                  near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
      std::vector<std::string>{});
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
  add_catalog(app, chosen);
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return Exit::done;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "shardplan: {}\nRun with --help for an example.\n", e.what());
    return Exit::usage;
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
