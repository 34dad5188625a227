// accelerate's configuration file: the part that decides how a DeepSpeed job starts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"
#include "json/positions.h"
#include "load/misread.h"

namespace shardplan {

struct AccelerateConfig {
  std::string file;
  Json document;
  KeyPositions positions;
  std::vector<MisreadKey> misread;        ///< in the order in which they were read
  std::string distributed_type;           ///< "DEEPSPEED", "FSDP", "MULTI_GPU", ...
  std::optional<std::int64_t> processes;  ///< of all machines
  std::int64_t machines = 1;
  std::optional<std::string> mixed_precision;
  std::optional<std::string> deepspeed_file;  ///< deepspeed_config.deepspeed_config_file
  std::optional<int> zero_stage;
  bool zero3_init = false;  ///< said, or true at stage 3

  bool deepspeed() const { return distributed_type == "DEEPSPEED"; }
  /// The value of a key of its deepspeed_config or fsdp_config block, or nullptr.
  const Json* deepspeed_key(std::string_view name) const;
  const Json* fsdp_key(std::string_view name) const;
};

/// Throws InputError for a file that is no mapping. What accelerate would refuse or ignore in it is
/// for the linter to say.
AccelerateConfig read_accelerate(std::string_view text, const std::string& file);

/// The ds_config that accelerate's DeepSpeedPlugin makes when no file is named
/// (accelerate: utils/dataclasses.py).
Json plugin_ds_config(const AccelerateConfig& config);

}  // namespace shardplan
