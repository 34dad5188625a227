#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/fit_question.h"
#include "cli/lists.h"
#include "cli/program.h"
#include "load/catalog.h"
#include "render/fixes_text.h"

namespace shardplan::cli {
namespace {

struct FitArguments {
  FitQuestion question;
  Output output;
};

Exit run_fit(const FitArguments& arguments) {
  const bool json = arguments.output.json();
  const JobAnswer a = answer(arguments.question, json ? kAllFixes : kShownFixes);
  if (json)
    arguments.output.write_json(to_json(a));
  else
    arguments.output.write_text(text_of(a));
  return a.estimate.verdict.fits ? Exit::done : Exit::does_not_fit;
}

void declare(CLI::App& app, Run& run, bool with_flags) {
  auto a = std::make_shared<FitArguments>();
  CLI::App* command = app.add_subcommand("fit", "Will this model train on these GPUs?");
  command->footer(
      "Example: shardplan fit llama-2-7b 4xA100-40GB --sequence-length 4096 --zero-stage 2\n"
      "Exit code 0: fits; 4: does not fit.");
  a->question.add_words(*command);
  if (with_flags) {
    a->question.add_flags(*command);
    add_output(*command, a->output);
  }
  command->callback([a, &run] {
    if (a->question.lacks_model())
      throw UsageError(
          "MODEL is required: a catalogue name, a config.json, a size such as 7B, or a file of a "
          "trainer's");
    if (a->question.lacks_cluster())
      throw UsageError(fmt::format(
          "CLUSTER is required: GPUs such as 4xA100-40GB, or an instance such as p4d.24xlarge; "
          "`shardplan table {}` compares machines",
          find_model(a->question.model) ? a->question.model : "MODEL"));
    run = [a] { return run_fit(*a); };
  });
}

}  // namespace

void add_fit(CLI::App& app, Run& run) {
  declare(app, run, true);
}

void add_fit_in_words(CLI::App& app, Run& run) {
  declare(app, run, false);
}

void add_output(CLI::App& command, Output& output, const std::vector<std::string>& formats) {
  command.add_option("--format", output.format, fmt::format("{}", fmt::join(formats, " or ")))
      ->check(word_among(formats));
  command.add_option("-o,--output", output.file, "write the answer to a file");
}

}  // namespace shardplan::cli
