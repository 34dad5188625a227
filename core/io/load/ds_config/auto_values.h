// The value "auto": what HF Trainer or accelerate put in its place, and what becomes of the rest.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json/document.h"
#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"

namespace shardplan {

struct ResolvedAuto {
  std::string path;
  Json value;  ///< null when DeepSpeed's default is "none"
  Said rule;   ///< in words: "hidden_size^2", "dropped, so DeepSpeed's default"
};

/// Replaces every "auto" of `document` or removes it. Where nobody resolves it DeepSpeed drops it
/// inside its typed blocks (runtime/config_utils.py) and would choke on it anywhere else: an error.
/// With HF Trainer, values that contradict `context.trainer` are errors too, as in
/// transformers: integrations/deepspeed.py trainer_config_finalize.
std::vector<ResolvedAuto> resolve_autos(Json& document, const DsConfigContext& context,
                                        DsFindings& findings);

}  // namespace shardplan
