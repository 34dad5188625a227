// Every key of a ds_config against the schema: known or not, its type, its range.
#pragma once

#include <cstdint>
#include <string>

#include "base/checked.h"
#include "frameworks/deepspeed/options.h"
#include "json/document.h"
#include "load/ds_config/coerce.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/rule.h"
#include "load/ds_config/schema.h"

namespace shardplan {

/// The document without what is unknown or wrong (each reported by rules/keys), and with values in
/// the type that DeepSpeed reads them as: what the rules and the options are computed from.
Json check_keys(const Json& document, const DeepSpeedVersion& version, DsFindings& findings);

enum class KeyProblem : std::uint8_t {
  unknown,
  inference,      ///< a key of deepspeed.init_inference(), or the first part of one
  other_version,  ///< came later, or went earlier, than this version
  not_an_object,
  null_value,
  refused_value,
  misread_value,
};

/// A key with a problem, as the walk over the document meets it.
struct MetKey {
  KeyProblem problem;
  const std::string& path;
  const Json& value;
  const DsNode& block;  ///< that it stands in
  DsUnknown unknown;    ///< what the block does with keys that DeepSpeed does not know
  const DeepSpeedVersion& version;
  const DsNode* node = nullptr;               ///< nullptr for an unknown one
  const DsInferenceKey* inference = nullptr;  ///< of KeyProblem::inference
  const Coerced* read = nullptr;              ///< of a refused or misread value
};

using KeyRule = CheckedRule<MetKey>;

/// Numbers of the file that multiply to more than 64 bits hold.
using OverflowRule = CheckedRule<OverflowError>;

}  // namespace shardplan
