// The DeepSpeed configurations that axolotl and LLaMA-Factory come with, for files that name one
// and are read without it.
#pragma once

#include <optional>
#include <string_view>

#include "json/document.h"

namespace shardplan::importing {

struct ShippedDsConfig {
  std::string_view trainer;
  Json config;
};

/// By the file's name, in the folder that the trainer keeps them in
/// ("deepspeed_configs/zero2.json", "examples/deepspeed/ds_z3_config.json"); nothing for another
/// path.
std::optional<ShippedDsConfig> shipped_ds_config(std::string_view path);

}  // namespace shardplan::importing
