#include "load/hardware.h"

#include <string>

#include "embedded/json.h"
#include "json/reader.h"
#include "load/catalog/parts.h"

namespace shardplan {
namespace {

/// Parses hardware/NAME.json and hands its root to `read`.
template <typename Read>
void read_file(const std::string& name, HardwareCatalog& out, Read read) {
  const std::string path = "hardware/" + name + ".json";
  const Json json = embedded_json(path);
  ObjectReader root(json, path);
  root.text("about");
  read(root, out);
  root.finish();
}

}  // namespace

HardwareCatalog load_hardware_catalog() {
  HardwareCatalog out;
  read_file("gpus", out, catalog::read_gpus);
  read_file("links", out, catalog::read_links);
  read_file("instances", out, catalog::read_instances);
  read_file("prices", out, catalog::read_prices);
  read_file("storage", out, catalog::read_storage);
  read_file("failures", out, catalog::read_failures);
  read_file("host", out, catalog::read_host);
  return out;
}

}  // namespace shardplan
