// How often measured runs stay under the predicted bound, and how much wider than them it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "questions/accuracy.h"

namespace shardplan {

struct Coverage {
  std::string name;         ///< of a framework; "all"
  std::int64_t runs = 0;    ///< none of them in the bound's own fit
  std::int64_t held = 0;    ///< of these, how many the bound is not below
  double median_width = 0;  ///< bound over measured, minus one
  double worst = 0;         ///< measured over bound, minus one: the largest
  std::string worst_name;   ///< of its record
  double share() const {
    return runs == 0 ? 1 : static_cast<double>(held) / static_cast<double>(runs);
  }
};

/// By framework, as the comparisons name it, in the order in which they first occur; "all" is the
/// last. The device's memory is judged where it was measured, reserved memory elsewhere. `fitted`:
/// names of the records that the bounds were fitted to.
std::vector<Coverage> coverage_of(const std::vector<Comparison>& comparisons,
                                  const std::vector<std::string>& fitted);

}  // namespace shardplan
