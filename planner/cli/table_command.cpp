#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/calibration_option.h"
#include "cli/commands.h"
#include "cli/cost_options.h"
#include "cli/job_options.h"
#include "cli/lists.h"
#include "cli/report_format.h"
#include "load/cluster.h"
#include "load/hardware.h"
#include "questions/machines.h"
#include "report/machines.h"

namespace shardplan::cli {
namespace {

/// One card, and nodes that people rent.
constexpr const char* kUsualMachines =
    "1xRTX4090,1xA100-80GB,1xH100,8xA100-80GB,8xH100,8xH200,8xB200";

struct TableArguments {
  std::vector<std::string> models;
  std::string methods = "full,lora,qlora", machines = kUsualMachines;
  std::string format, language = "en";
  JobOptions job;
  CalibrationOption calibration;
  CostTerms cost;
  unsigned threads = 0;
  Output output;
};

/// What the lists say is not a flag's to say too.
void refuse_single(const TableArguments& a) {
  for (const auto& [flag, list] :
       {std::pair{"--model", "MODELS"}, std::pair{"--mlp", "MODELS"},
        std::pair{"--cluster", "--machines"}, std::pair{"--method", "--methods"}})
    if (a.job.given(flag))
      throw InputError({.file = "<command line>",
                        .key = flag,
                        .message = "a table has several",
                        .expected = list});
}

/// Names that nobody knows are mistakes of the question; what cannot run is an answer.
void check_names(const MachineQuestion& q, const HardwareCatalog& hardware) {
  const std::vector<std::string> methods{"full", "lora", "qlora"};
  for (const std::string& method : q.methods) choice_of("--methods", method, methods);
  for (const std::string& machine : q.machines)
    load_job(Json{{"model", "gpt2"}, {"cluster", machine}}, "<command line>",
             {.hardware = &hardware});
  for (const std::string& model : q.models)
    load_job(Json{{"model", model}, {"cluster", q.machines.front()}}, "<command line>",
             {.hardware = &hardware});
}

/// "llama-2-7b 8xH100", as every other command is asked: what is a cluster is a machine.
void take_machines(TableArguments& a, const HardwareCatalog& hardware) {
  std::vector<std::string> machines;
  const auto is_machine = [&](const std::string& word) {
    try {
      load_cluster(word, "<command line>", "cluster", hardware);
    } catch (const InputError&) {
      return false;
    }
    machines.push_back(word);
    return true;
  };
  if (a.models.size() > 1) std::erase_if(a.models, is_machine);
  if (!machines.empty()) a.machines = fmt::format("{}", fmt::join(machines, ","));
}

Exit table(TableArguments a) {
  refuse_single(a);
  const HardwareCatalog hardware = load_hardware_catalog();
  take_machines(a, hardware);
  const std::string format = report_format(a.format, a.output.file);
  MachineQuestion question{.models = a.models,
                           .methods = split_list(a.methods),
                           .machines = split_list(a.machines),
                           .job = a.job.of_flags(),
                           .directory = "",
                           .terms = a.cost};
  for (const auto& [flag, empty] : {std::pair{"--methods", question.methods.empty()},
                                    std::pair{"--machines", question.machines.empty()}})
    if (empty)
      throw InputError({.file = "<command line>",
                        .key = flag,
                        .message = "names nothing",
                        .expected = "names with commas between"});
  check_names(question, hardware);
  const Job first = load_job(Json{{"model", "gpt2"}, {"cluster", question.machines.front()}},
                             "<command line>", {.hardware = &hardware});
  const auto answers = ask_machines(question, hardware, a.calibration.load_for(first), a.threads);
  const report::Report page = report::machines_report(answers, SHARDPLAN_VERSION);
  a.output.write_bytes(rendered(page, format, report::Messages(a.language)));
  const bool any = std::any_of(answers.begin(), answers.end(), [](const MachineAnswer& answer) {
    return answer.error.empty() && answer.estimate.verdict.fits;
  });
  return any ? Exit::done : Exit::does_not_fit;
}

}  // namespace

void add_table(CLI::App& app, Run& run) {
  auto a = std::make_shared<TableArguments>();
  CLI::App* command = app.add_subcommand("table", "Which machine for which model and method?");
  command->add_option("MODELS", a->models, "catalogue names, config.json files, sizes such as 7B")
      ->required();
  command->add_option("--methods", a->methods, "of full, lora, qlora; all if absent");
  command->add_option("--machines", a->machines,
                      fmt::format("names as for fit; {} if absent", kUsualMachines));
  command
      ->add_option("--format", a->format,
                   "md, html, json or csv; without it what the extension of -o says, or md")
      ->check(word_among({"md", "html", "json", "csv"}));
  command->add_option("--language", a->language, "of html and md: en, ja or ko")
      ->check(word_among(languages()));
  command->add_option("--threads", a->threads, "as many as the machine has, if absent");
  command->add_option("-o,--output", a->output.file, "write the answer to a file");
  command->footer(
      "Example: shardplan table llama-3.1-8b llama-3.1-70b --methods lora,qlora \\\n"
      "           --machines 1xRTX4090,1xH100,8xH100 --sequence-length 4096 -o table.html\n"
      "Each at the largest micro-batch that surely fits, or at --micro-batch; other fields of a\n"
      "job are flags too and hold for all. Exit code 0: something fits; 4: nothing does.");
  a->job.add_flags(*command);
  a->calibration.add_flags(*command);
  add_cost_flags(*command, a->cost);
  command->callback([a, &run] { run = [a] { return table(*a); }; });
}

}  // namespace shardplan::cli
