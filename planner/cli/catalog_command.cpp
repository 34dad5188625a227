#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "load/hardware.h"
#include "render/catalog_text.h"

namespace shardplan::cli {
namespace {

struct CatalogArguments {
  std::string what;
  Output output;
};

Exit list(const CatalogArguments& a) {
  const bool json = a.output.json();
  if (a.what == "models") {
    a.output.write(json ? models_json().dump(2) + "\n" : models_text());
    return Exit::done;
  }
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
  CLI::App* command = app.add_subcommand("catalog", "What is built in: models, gpus or clusters");
  command->add_option("WHAT", a->what, "models, gpus or clusters")
      ->required()
      ->check(CLI::IsMember({"models", "gpus", "clusters"}));
  command->footer("Example: shardplan catalog gpus");
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return list(*a); }; });
}

}  // namespace shardplan::cli
