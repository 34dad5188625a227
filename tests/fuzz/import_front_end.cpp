#include "import_front_end.h"

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "import/import.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan {

void run_import(std::string_view text) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  try {
    const std::vector<importing::Document> documents =
        importing::parse_documents(text, "/nowhere/file");
    const Json flags{{"cluster", "8xH100-80GB"}, {"model", "gpt2"}};
    importing::Imported imported = importing::import_documents(documents, "", flags);
    importing::all_notes(imported.notes);
    importing::short_notes(imported.notes);
    overlay(imported.job, flags);
    load_job(imported.job, "job.json", {.hardware = &hardware, .directory = "/nowhere"});
  } catch (const InputError&) {
  } catch (const OverflowError&) {
  }
}

}  // namespace shardplan
