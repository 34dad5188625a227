#include "import/import.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/job_options.h"

namespace shardplan::cli {
namespace {

struct ImportArguments {
  JobOptions job;
  std::string kind;
  Output output;
};

Json note_json(const importing::Note& note) {
  static constexpr std::array kWords{"took", "ignored", "not_counted", "not_known", "assumed"};
  Json json{{"what", kWords[static_cast<std::size_t>(note.kind)]}};
  if (!note.file.empty()) json["file"] = note.file;
  if (note.line > 0) json["line"] = note.line;
  if (!note.key.empty()) json["key"] = note.key;
  if (!note.field.empty()) json["field"] = note.field;
  if (!note.reason.empty()) json["reason"] = note.reason;
  return json;
}

Exit run_import(const ImportArguments& a) {
  const Json flags = a.job.of_flags();
  importing::Imported imported = importing::import_files(a.job.files, a.kind, flags);
  Json others = flags;
  others.erase("cluster");  // which the import has taken, with what the files count
  overlay(imported.job, others);
  check(imported, imported.job, a.job.file);
  for (const std::string& heading : imported.headings) tell(heading + "\n");
  tell(importing::all_notes(imported.notes));
  if (!a.output.json()) {
    a.output.write_json(imported.job);
    return Exit::done;
  }
  Json notes = Json::array();
  for (const importing::Note& note : imported.notes) notes.push_back(note_json(note));
  a.output.write_json(Json{{"job", imported.job}, {"notes", std::move(notes)}});
  return Exit::done;
}

}  // namespace

void add_import(CLI::App& app, Run& run) {
  auto a = std::make_shared<ImportArguments>();
  CLI::App* command = app.add_subcommand("import", "A trainer's own files, turned into a job");
  a->job.add_files(*command,
                   "files that are one job: YAML, TOML, JSON, a launch script, a hostfile");
  command->get_option("JOB")->required();
  command->add_option("--kind", a->kind, "what the files are, where their content does not tell");
  command->footer(
      "Example: shardplan import sft.yaml accelerate.yaml --cluster 8xH100-80GB -o job.json\n"
      "stderr has what was taken from where, and what was left out and why.\n"
      "Exit code 3: a key that cannot be understood, or something that is in no file.");
  a->job.add_flags(*command, "--kind");
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return run_import(*a); }; });
}

}  // namespace shardplan::cli
