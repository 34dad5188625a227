#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/lists.h"
#include "load/hardware.h"
#include "render/accuracy_text.h"

namespace shardplan::cli {
namespace {

struct AccuracyArguments {
  std::vector<std::string> paths;
  std::string group = "framework";
  bool details = false;
  Output output;
};

AccuracyGroup group_of(const std::string& name) {
  if (name == "model") return AccuracyGroup::model;
  return name == "precision" ? AccuracyGroup::precision : AccuracyGroup::framework;
}

Exit run_accuracy(const AccuracyArguments& a) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const RecordList records =
      a.paths.empty() ? built_in_records(hardware) : load_records(a.paths, hardware);
  const Accuracy accuracy = compare_with_records(records, group_of(a.group));
  if (a.output.json()) {
    a.output.write_json(accuracy_json(accuracy));
  } else if (a.output.format == "csv") {
    a.output.write_bytes(accuracy_csv(accuracy));
  } else {
    a.output.write_text(accuracy_text(accuracy, a.details));
  }
  for (const Diagnostic& d : accuracy.bad) tell(fmt::format("shardplan: {}\n", to_string(d)));
  return accuracy.bad.empty() ? Exit::done : Exit::bad_input;
}

}  // namespace

void add_accuracy(CLI::App& app, Run& run) {
  auto a = std::make_shared<AccuracyArguments>();
  CLI::App* command =
      app.add_subcommand("accuracy", "Predictions against measurements: errors, mean and largest");
  command->add_option("RECORD", a->paths,
                      "record files or folders of them; without any, the built-in records");
  command->add_option("--group", a->group, "framework, model or precision")
      ->check(word_among({"framework", "model", "precision"}));
  command->add_flag("--details", a->details, "every figure of every record (text)");
  command->add_option("--format", a->output.format, "text, json or csv")
      ->check(word_among({"text", "json", "csv"}));
  command->add_option("-o,--output", a->output.file, "write the answer to a file");
  command->footer(
      "Example: shardplan accuracy --group model --details\n"
      "Exit code 3: a record could not be read or estimated; the others are compared.");
  command->callback([a, &run] { run = [a] { return run_accuracy(*a); }; });
}

}  // namespace shardplan::cli
