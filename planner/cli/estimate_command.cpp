#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/estimate_question.h"

namespace shardplan::cli {
namespace {

struct EstimateArguments {
  EstimateQuestion question;
  Output output;
};

Exit run_estimate(const EstimateArguments& arguments) {
  const JobAnswer a = answer(arguments.question);
  if (arguments.output.json())
    arguments.output.write_json(to_json(a));
  else
    arguments.output.write_text(text_of(a));
  return a.estimate.verdict.fits ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_estimate(CLI::App& app, Run& run) {
  auto a = std::make_shared<EstimateArguments>();
  CLI::App* command = app.add_subcommand("estimate", "Memory, traffic and time of one job");
  command->footer(
      "Example: shardplan estimate configs/jobs/llama-2-7b-zero3.json --micro-batch 2 --format "
      "json\n"
      "Exit code 0: fits; 4: does not fit.");
  a->question.add_to(*command);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_estimate(*a); }; });
}

}  // namespace shardplan::cli
