// How products over counts of rows that change from step to step share an algorithm.
#pragma once

#include <cstdint>

namespace shardplan::validator {

/// Counts of rows that experts were given share an algorithm in classes that end at the powers of
/// four from 128 on. cuBLASLt's heuristic takes the host longer than a product takes the GPU, and a
/// kernel that had not run yet is loaded first: with few classes all of it is over after the first
/// step. torch's _grouped_mm has one tile for all groups of a product.
constexpr std::int64_t class_of_rows(std::int64_t rows) {
  constexpr std::int64_t kLeast = 128, kFactor = 4;
  std::int64_t most = kLeast;
  while (most < rows) most *= kFactor;
  return most;
}

}  // namespace shardplan::validator
