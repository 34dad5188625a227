// What the rules of a ds_config look at where it is read.
#pragma once

#include <span>

#include "load/ds_config/auto_values.h"
#include "load/ds_config/context.h"
#include "load/ds_config/rule.h"
#include "load/ds_config/values.h"

namespace shardplan {

struct ConfigSubject {
  DsValues values;  ///< checked
  const DsConfigContext& context;
  /// A required argument that could not be resolved here is resolved when the job starts.
  std::span<const ResolvedAuto> autos;
};

/// Found from the file and its context alone, whenever it is read.
using ConfigRule = CheckedRule<ConfigSubject>;

}  // namespace shardplan
