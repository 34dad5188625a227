#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "json/document.h"
#include "load/hardware.h"
#include "render/catalog_text.h"
#include "render/option_text.h"

namespace shardplan::cli {
namespace {

struct CatalogArguments {
  std::string what;
  std::string page;  ///< for options: the file whose tables to make anew
  Output output;
};

Exit list_options(const CatalogArguments& a) {
  if (!a.page.empty()) {
    a.output.write(with_option_tables(read_text_file(a.page), a.page));
  } else {
    a.output.write(a.output.json() ? options_json().dump(2) + "\n" : options_text());
  }
  return Exit::done;
}

Exit list(const CatalogArguments& a) {
  const bool json = a.output.json();
  if (a.what == "models") {
    a.output.write(json ? models_json().dump(2) + "\n" : models_text());
    return Exit::done;
  }
  if (a.what == "options") return list_options(a);
  const HardwareCatalog catalog = load_hardware_catalog();
  if (a.what == "gpus") {
    a.output.write(json ? gpus_json(catalog).dump(2) + "\n" : gpus_text(catalog));
  } else {
    a.output.write(json ? clusters_json(catalog).dump(2) + "\n" : clusters_text(catalog));
  }
  return Exit::done;
}

}  // namespace

void add_catalog(CLI::App& app, Run& run) {
  auto a = std::make_shared<CatalogArguments>();
  CLI::App* command = app.add_subcommand(
      "catalog", "What is built in: models, gpus, clusters or the options of a job");
  command->add_option("WHAT", a->what, "models, gpus, clusters or options")
      ->required()
      ->check(CLI::IsMember({"models", "gpus", "clusters", "options"}));
  command->footer("Example: shardplan catalog gpus");
  // Hidden: tools/make_job_doc.sh writes docs/reference/job.md with it.
  command->add_option("--page", a->page)->group("")->check(CLI::ExistingFile);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return list(*a); }; });
}

}  // namespace shardplan::cli
