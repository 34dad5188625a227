// shardplan: will it fit, how fast will it run, what would change that?
#include <fmt/format.h>

#include <cstdio>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  using shardplan::cli::Exit;
  const auto failed = [](Exit exit, const std::string& message) {
    fmt::print(stderr, "shardplan: {}\n", message);
    return static_cast<int>(exit);
  };
  try {
    return static_cast<int>(shardplan::cli::run_program({argv + 1, argv + argc}));
  } catch (const shardplan::cli::UsageError& e) {
    return failed(Exit::usage, fmt::format("{}\nRun with --help for an example.", e.what()));
  } catch (const shardplan::InputError& e) {
    return failed(Exit::bad_input, e.what());
  } catch (const shardplan::OverflowError& e) {
    return failed(Exit::bad_input, fmt::format("the job is too large to compute: {}", e.what()));
  } catch (const std::exception& e) {
    return failed(Exit::internal, fmt::format("internal error: {}", e.what()));
  }
}
