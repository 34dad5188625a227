// The parts of the hardware catalogue, each from the root object of its file.
#pragma once

#include "hardware/catalog.h"
#include "json/reader.h"

namespace shardplan::catalog {

void read_gpus(ObjectReader& root, HardwareCatalog& out);       ///< hardware/gpus.json
void read_links(ObjectReader& root, HardwareCatalog& out);      ///< hardware/links.json
void read_instances(ObjectReader& root, HardwareCatalog& out);  ///< hardware/instances.json
void read_prices(ObjectReader& root, HardwareCatalog& out);    ///< hardware/prices.json, after them
void read_storage(ObjectReader& root, HardwareCatalog& out);   ///< hardware/storage.json
void read_failures(ObjectReader& root, HardwareCatalog& out);  ///< hardware/failures.json
void read_host(ObjectReader& root, HardwareCatalog& out);      ///< hardware/host.json

}  // namespace shardplan::catalog
