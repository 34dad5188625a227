// What a command says beside the configuration that it names.
#pragma once

#include "import/document.h"

namespace shardplan::importing {

/// Moves the command's arguments over the file's keys, as the trainers themselves do
/// (LLaMA-Factory's `train a.yaml cutoff_len=2048`, `axolotl train a.yml --micro-batch-size 2`,
/// TRL's `--config a.yaml --max_length 512`).
void lay_over(Document& command, Document& file);

}  // namespace shardplan::importing
