// What each key of a ds_config costs or saves for this model and machine, by estimating the job
// with the key and without it, and with values that may be better.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lint/priced_job.h"
#include "load/ds_config/values.h"

namespace shardplan {

/// A difference between two variants: positive needs more.
struct PriceDelta {
  std::int64_t gpu = 0, host = 0, nvme = 0;
  double pace = 1;  ///< seconds a token, as a factor; 1 where unknown
};
PriceDelta difference(const Price& with, const Price& without);

struct BetterValue {
  Json value;
  PriceDelta change;  ///< against the present value
  bool fits = false;
};

struct KeyCost {
  std::string path;
  Json value;                       ///< that is in force
  bool given = false;               ///< it is in the file
  Json without;                     ///< DeepSpeed's default; null where the key's absence means off
  std::optional<PriceDelta> costs;  ///< against being without it
  std::string problem;              ///< why it cannot be left out
  std::optional<BetterValue> better;
};

/// Every memory-relevant key of the file, in the schema's order, and those left out whose default
/// is worth changing.
std::vector<KeyCost> price_keys(const PricedJob& job, const DsValues& values);

}  // namespace shardplan
