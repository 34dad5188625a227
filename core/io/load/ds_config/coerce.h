// One value read as the type of its key, with the tolerance that DeepSpeed has.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/said.h"
#include "json/document.h"
#include "load/ds_config/schema.h"

namespace shardplan {

enum class Refusal : std::uint8_t { type, range, choice };

struct Coerced {
  std::optional<Json> value;        ///< absent: DeepSpeed refuses it, or misreads it
  Said remark;                      ///< not empty: accepted, but not what one would write
  std::string nearest;              ///< for a text that is not one of the allowed ones
  Refusal refusal = Refusal::type;  ///< why there is no value
};

/// Typed blocks (pydantic, not strict) read 5e8 and "5" as integers, true as 1, "on" as true; plain
/// dictionaries take numbers without a fraction as integers and convert nothing else.
Coerced coerce(const Json& value, const DsNode& key, bool typed_block);

/// "an integer of at least 0", "one of cpu, nvme, none": what a key takes.
Said expected_text(const DsNode& key);

}  // namespace shardplan
