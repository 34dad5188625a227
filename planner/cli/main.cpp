// shardplan: will it fit, how fast will it run, what would change that?
#include <fmt/format.h>

#include <string_view>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "base/printable.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  using namespace shardplan;
  using cli::Exit;
  const auto failed = [](Exit code, std::string_view what, std::string_view why) {
    cli::tell(fmt::format("shardplan: {}{}\n", what, printable(why)));
    return static_cast<int>(code);
  };
  try {
    return static_cast<int>(cli::run_program({argv + 1, argv + argc}));
  } catch (const cli::UsageError& e) {
    const int code = failed(Exit::usage, "", e.what());
    cli::tell("Run with --help for an example.\n");
    return code;
  } catch (const InputError& e) {
    return failed(Exit::bad_input, "", e.what());
  } catch (const OverflowError& e) {
    return failed(Exit::bad_input, "the job is too large to compute: ", e.what());
  } catch (const cli::OutputError& e) {
    return failed(Exit::internal, "", e.what());
  } catch (const std::exception& e) {
    return failed(Exit::internal, "internal error: ", e.what());
  }
}
