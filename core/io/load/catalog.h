// The models that are built in: data/models/*.json, one file a family.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"

namespace shardplan {

struct CatalogModel {
  std::string name;
  std::string family;                ///< the file below data/models, without ".json"
  std::vector<std::string> aliases;  ///< names on the Hugging Face Hub and others
  std::string source;                ///< where the configuration was published
  std::int64_t parameters = 0;
  bool unverified = false;  ///< put together from other copies: the published file was not seen
  Json config;
};

/// The entry that `name` means: case, '-', '_', '.', spaces and an organisation before '/' do not
/// matter. nullopt when there is none.
std::optional<CatalogModel> find_model(std::string_view name);

/// The spelling in the catalogue that is nearest to `name`, or "".
std::string nearest_model(std::string_view name);

/// All entries, by family and then in the order of the file.
std::vector<CatalogModel> catalog_models();

}  // namespace shardplan
