// The answers of `shardplan catalog`: what is built in.
#pragma once

#include <string>

#include "hardware/catalog.h"
#include "json/document.h"

namespace shardplan {

// Text marks figures that no source confirms with "?"; JSON lists them under "unverified".
std::string models_text();
Json models_json();
std::string gpus_text(const HardwareCatalog& catalog);
Json gpus_json(const HardwareCatalog& catalog);
std::string clusters_text(const HardwareCatalog& catalog);
Json clusters_json(const HardwareCatalog& catalog);

}  // namespace shardplan
