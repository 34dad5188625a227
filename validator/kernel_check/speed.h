// How fast one GPU trains a model, and where the time of a step goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/network.h"
#include "formats/dtype.h"

namespace shardplan::validator {

struct SpeedOptions {
  std::string model;  ///< a catalogue name
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 1024;
  DType dtype = DType::bf16;
  bool master = true;  ///< fp32 masters and moments; without: everything in `dtype`
  Keep keep = Keep::everything;
  Fp8Recipe fp8 = Fp8Recipe::none;
  int steps = 8;
};

/// Trains a few steps on random tokens, and returns the report.
std::string speed_report(const SpeedOptions& options);

}  // namespace shardplan::validator
