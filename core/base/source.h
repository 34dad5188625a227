// Where a number comes from. Every figure that shardplan shows carries one of these.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan {

enum class Source : std::uint8_t {
  exact,       ///< counted from the model or the plan
  modelled,    ///< closed form or simulated
  calibrated,  ///< fitted; the calibration is named
  measured,    ///< read from a record
  assumed,     ///< a default
};

constexpr std::string_view name_of(Source source) {
  switch (source) {
    case Source::exact:
      return "exact";
    case Source::modelled:
      return "modelled";
    case Source::calibrated:
      return "calibrated";
    case Source::measured:
      return "measured";
    case Source::assumed:
      return "assumed";
  }
  return "";
}

/// The weaker of two: a sum is only as good as its weakest part.
constexpr Source weaker(Source a, Source b) {
  return a > b ? a : b;
}

}  // namespace shardplan
