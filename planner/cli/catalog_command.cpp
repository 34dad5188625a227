#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/lists.h"
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

/// The same list for a program or for people.
template <typename ToJson, typename ToText>
Exit listed(const Output& output, const ToJson& to_json, const ToText& to_text) {
  if (output.json())
    output.write_json(to_json());
  else
    output.write_text(to_text());
  return Exit::done;
}

Exit list(const CatalogArguments& a) {
  if (!a.page.empty()) {
    a.output.write_bytes(with_option_tables(read_text_file(a.page), a.page));
    return Exit::done;
  }
  if (a.what == "models") return listed(a.output, models_json, models_text);
  if (a.what == "options") return listed(a.output, options_json, options_text);
  const HardwareCatalog catalog = load_hardware_catalog();
  if (a.what == "gpus")
    return listed(
        a.output, [&] { return gpus_json(catalog); }, [&] { return gpus_text(catalog); });
  return listed(
      a.output, [&] { return clusters_json(catalog); }, [&] { return clusters_text(catalog); });
}

}  // namespace

void add_catalog(CLI::App& app, Run& run) {
  auto a = std::make_shared<CatalogArguments>();
  CLI::App* command = app.add_subcommand(
      "catalog", "What is built in: models, gpus, clusters or the options of a job");
  command->add_option("WHAT", a->what, "models, gpus, clusters or options")
      ->required()
      ->check(word_among({"models", "gpus", "clusters", "options"}));
  command->footer("Example: shardplan catalog gpus");
  // Hidden: tools/make_job_doc.sh writes docs/reference/job.md with it.
  command->add_option("--page", a->page)->group("")->check(CLI::ExistingFile);
  add_output(*command, a->output);
  command->callback([a, &run] { run = [a] { return list(*a); }; });
}

}  // namespace shardplan::cli
