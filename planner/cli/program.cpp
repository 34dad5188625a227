#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/completion/candidates.h"
#include "cli/spoken_flags.h"
#include "cli/terminal.h"
#include "job/fields.h"
#include "json/given_texts.h"
#include "load/catalog.h"
#include "render/text_width.h"

namespace shardplan::cli {
namespace {

constexpr std::string_view kVersion = "--version";
constexpr const char* kAbout =
    "Predicts memory, traffic and time of a training step before you rent the GPUs.\n"
    "Example: shardplan fit llama-2-7b 4xA100-40GB";

/// What is wrong with the command's name, or "": CLI11 would call it a stray argument.
std::string command_error(std::string_view asked) {
  if (asked.empty() || asked.front() == '-') return {};
  const std::vector<std::string> names = command_names();
  if (std::find(names.begin(), names.end(), asked) != names.end()) return {};
  const std::string near = nearest(asked, std::span<const std::string>(names));
  // A model's name or a file in the command's place asks whether it fits.
  const bool is_question = near.empty() && (find_model(asked) || is_readable(std::string(asked)));
  return to_string({.message = fmt::format("unknown command '{}'", asked),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .nearest = is_question ? fmt::format("fit {}", asked) : near});
}

/// "fit gpt2 4 A100": one word too many. Throws for those; flags are refused before.
[[noreturn]] void refuse_words(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& extras) {
  const std::string& extra = extras.front();
  const auto at = std::find(arguments.begin() + 1, arguments.end(), extra);
  const std::string before = at == arguments.end() ? "" : *std::prev(at);
  const auto counts = [](std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789xX") == std::string_view::npos &&
           is_digit(word.front());
  };
  std::string near;
  if (counts(before) && extras.size() <= 2) {
    near = before;
    if (is_digit(near.back())) near += 'x';
    near += extras.back();
  } else if (counts(extra) && extra.size() <= 3 && extras.size() == 1) {  // "H100 8"
    near = fmt::format("{}x{}", extra, before);
  }
  throw UsageError(to_string({.message = fmt::format("'{}' is one word too many", extra),
                              .expected = "one word, or quotes around what has blanks in it",
                              .nearest = near}));
}

/// "--checkpointing" alone: what the flag's value can be, in place of CLI11's "1 required TEXT".
std::string with_choices(const std::string& mismatch) {
  const std::string flag = mismatch.substr(0, mismatch.find(':'));
  if (mismatch.find("required") == std::string::npos) return mismatch;
  for (const JobField& field : job_fields())
    if (field.flag == flag)
      return to_string(
          {.message = fmt::format("{} has no value behind it", flag), .expected = field.help});
  return mismatch;
}

}  // namespace

Exit run_program(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == kCompletion)
    return complete({arguments.begin() + 1, arguments.end()});
  CLI::App app(kAbout, "shardplan");
  app.set_version_flag(std::string(kVersion), SHARDPLAN_VERSION);
  app.require_subcommand(1);
  Run chosen;
  const std::string asked = arguments.empty() ? "" : arguments.front();
  try {
    if (const std::string error = command_error(asked); !error.empty()) throw UsageError(error);
    const bool in_words = std::ranges::none_of(
        arguments, [](const std::string& argument) { return argument.starts_with('-'); });
    if (asked != kVersion)
      add_commands(app, chosen, asked, in_words);  // every flag of every command: 15 ms
    std::vector<std::string> meant(arguments.begin() + (arguments.empty() ? 0 : 1),
                                   arguments.end());
    const auto is_asked = [&](const CLI::App* command) { return command->get_name() == asked; };
    for (const CLI::App* command : app.get_subcommands(is_asked))
      meant = spoken_flags(meant, *command);
    if (arguments.empty()) {
      Output().write_text(app.help());
      return Exit::usage;
    }
    meant.insert(meant.begin(), asked);
    std::reverse(meant.begin(), meant.end());  // CLI11 takes the last one first
    app.parse(std::move(meant));
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    app.exit(e, text, text);
    Output().write_text(text.str());
    return Exit::done;
  } catch (const UnknownFlag& e) {
    throw UsageError(e.what());
  } catch (const CLI::ExtrasError& e) {
    const std::vector<std::string> extras = app.remaining(true);
    if (extras.empty() || extras.front().starts_with('-')) throw UsageError(e.what());
    refuse_words(arguments, extras);
  } catch (const CLI::ArgumentMismatch& e) {
    throw UsageError(with_choices(e.what()));
  } catch (const CLI::ParseError& e) {
    throw UsageError(e.what());
  }
  const TextWidth width(terminal_columns());
  return chosen();
}

}  // namespace shardplan::cli
