// An "auto" that nobody put a value in the place of: what rules/autos look at.
#pragma once

#include <cstdint>
#include <string>

#include "json/document.h"
#include "load/ds_config/auto_values.h"
#include "load/ds_config/rule.h"
#include "load/ds_config/schema.h"

namespace shardplan {

/// What becomes of an "auto" without a value.
enum class AutoFate : std::uint8_t {
  missing_input,  ///< it is resolved when the job starts, from what is not known here
  nobody_resolves,
  not_resolved,
};

struct LostAuto {
  AutoFate fate;
  const std::string& path;
  const DsNode& key;
  const Said& missing;   ///< of AutoFate::missing_input
  const Json& fallback;  ///< DeepSpeed's default; null: none
  AutoResolver resolver;
};

using LostAutoRule = CheckedRule<LostAuto>;

}  // namespace shardplan
