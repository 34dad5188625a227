// The arguments of Hugging Face's Trainer as JSON: what HfArgumentParser.parse_json_file reads and
// TrainingArguments.to_json_string writes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "json/document.h"
#include "json/positions.h"
#include "load/ds_config/context.h"
#include "load/misread.h"

namespace shardplan {

struct TrainingArguments {
  std::string file;
  Json document;
  KeyPositions positions;
  std::vector<MisreadKey> misread;  ///< in the order in which they were read
  /// With TrainingArguments' default where the file is silent: HF Trainer compares those too.
  TrainerArguments values;
  std::int64_t micro_batch = 8;          ///< also under auto_find_batch_size
  std::optional<std::string> deepspeed;  ///< path of the ds_config, as written
  std::optional<std::string> optimizer;  ///< optim, if the file has it
  std::optional<std::string> scheduler;  ///< lr_scheduler_type, if the file has it
  bool gradient_checkpointing = false;
  bool adafactor = false;
};

/// Names that are none of its arguments belong to the program's own, which share the file. Throws
/// InputError for a file that is no object.
TrainingArguments read_training_arguments(std::string_view text, const std::string& file);

}  // namespace shardplan
