// ds_config.json to DeepSpeedOptions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "frameworks/deepspeed/options.h"
#include "json/document.h"
#include "load/ds_config/auto_values.h"
#include "load/ds_config/context.h"

namespace shardplan {

struct DsConfigResult {
  DeepSpeedOptions options;
  std::vector<ResolvedAuto> autos;
  std::vector<Diagnostic> diagnostics;  ///< in the order in which they were found
  Json checked;  ///< without what is unknown or wrong, "auto" resolved: what DsValues reads
};

/// Everything that can be said about a file, errors included; the options then stand on defaults
/// wherever a value was wrong. `file` names it in messages. Throws only when `config` is no object.
DsConfigResult check_ds_config(const Json& config, const std::string& file,
                               const DsConfigContext& context);

/// The same, for who wants to use the options: the first error is thrown as InputError, and
/// `diagnostics` holds warnings and notes only.
DsConfigResult load_ds_config(const Json& config, const std::string& file,
                              const DsConfigContext& context);

}  // namespace shardplan
