// Keys of NeMo Automodel's that divide a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "import/keys.h"

namespace shardplan::importing::nemo {

/// Pipeline stages; 1: none.
std::int64_t stages_of(const Document& d);

/// The local batch is what a schedule cuts into micro-batches (recipes/llm/train_ft.py).
void read_local_batch(Key& key);
/// The order of micro-batches, and two chunks on each stage where it has several.
void read_schedule(Key& key);
void read_token_division(Key& key);

/// Where chunks are said by their layers: pipelining/functional.py, calculate_virtual_stages.
void take_chunks(const Document& d, Recipe& recipe);

}  // namespace shardplan::importing::nemo
