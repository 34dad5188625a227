// A number with its unit and its source: the only form in which a report holds one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/source.h"

namespace shardplan::report {

enum class Unit : std::uint8_t {
  bytes,
  count,
  parameters,
  seconds,
  tokens_per_second,
  bytes_per_second,
  flops,     ///< FLOP/s
  fraction,  ///< shown in per cent
  factor,    ///< "2.1×"
  gpu_hours,
  days,
  kwh,
  money,    ///< in the currency of the price that the job says
  dollars,  ///< US, of list prices
};

/// As programs read it: "bytes", "FLOP/s".
std::string_view name_of(Unit unit);

struct Quantity {
  std::variant<std::int64_t, double> value;
  Unit unit = Unit::count;
  Source source = Source::exact;
  bool is_change = false;  ///< a difference: shown with its sign
};

double as_double(const Quantity& quantity);

/// With its unit, for people: "38.9 GiB", "+1.5 GiB", "31.2 %".
std::string to_text(const Quantity& quantity);

/// Without its unit, for programs: an integer, or six significant figures of a fraction, so that
/// machines that round differently write the same bytes.
std::string to_number(const Quantity& quantity);

inline Quantity bytes(std::int64_t n, Source source) {
  return {n, Unit::bytes, source};
}
inline Quantity count(std::int64_t n, Source source = Source::exact) {
  return {n, Unit::count, source};
}
inline Quantity seconds(double s, Source source) {
  return {s, Unit::seconds, source};
}

}  // namespace shardplan::report
