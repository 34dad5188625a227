// The value "auto": what HF Trainer or accelerate put in its place, and what becomes of the rest.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"
#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"

namespace shardplan {

struct ResolvedAuto {
  std::string path;
  Json value;            ///< null when DeepSpeed's default is "none"
  Said rule;             ///< in words: "hidden_size^2", "dropped, so DeepSpeed's default"
  bool guessed = false;  ///< what most run, because the trainer's arguments are not known
};

/// Replaces every "auto" of `document` or removes it; what is lost is reported by rules/autos. A
/// file without any precision gets the trainer's, as from accelerate (utils/dataclasses.py
/// DeepSpeedPlugin.set_mixed_precision).
std::vector<ResolvedAuto> resolve_autos(Json& document, const DsConfigContext& context,
                                        DsFindings& findings);

/// "nobody", "HF Trainer", "accelerate"
std::string_view resolver_in_words(AutoResolver resolver);

/// Divides the world as the batch triangle does; 1 when the file's value is no use.
std::int64_t sequence_parallel_of(const Json& document);

}  // namespace shardplan
