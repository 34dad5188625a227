// Old spellings of a ds_config, moved to where DeepSpeed reads them today.
#pragma once

#include <cstdint>

#include "json/document.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/rule.h"
#include "load/ds_config/schema.h"

namespace shardplan {

/// Rewrites `document`: deprecated keys and accepted second names become the current key; an old
/// and a new spelling together are an error, as in DeepSpeed (runtime/config_utils.py
/// _process_deprecated_field). rules/deprecated says what is found.
void move_deprecated(Json& document, DsFindings& findings);

/// What becomes of an old spelling that the document has.
enum class OldKeyFate : std::uint8_t {
  kept,         ///< still read where it stands
  ignored,      ///< no longer read
  shadowed,     ///< its replacement is there, and wins
  twice,        ///< its replacement is there, and DeepSpeed stops
  moved,        ///< to its replacement
  alias_twice,  ///< a second name beside the first
};

struct OldKey {
  const DsNode& node;
  OldKeyFate fate;
};

using OldKeyRule = CheckedRule<OldKey>;
/// Looks at the document before anything is moved.
using RawConfigRule = CheckedRule<Json>;

}  // namespace shardplan
