#include "report/quantity.h"

#include <fmt/format.h>

#include <cmath>

#include "base/format.h"
#include "base/units.h"

namespace shardplan::report {
namespace {

/// Whole from 100 on, else three significant figures.
std::string figure(double x) {
  return x < 100 ? fmt::format("{:.3g}", x)
                 : format_count(static_cast<std::int64_t>(std::llround(x)));
}

std::string magnitude(const Quantity& q, double x) {
  const auto whole = [&] { return static_cast<std::int64_t>(std::llround(x)); };
  switch (q.unit) {
    case Unit::bytes:
      return format_bytes(whole());
    case Unit::count:
      return format_count(whole());
    case Unit::parameters:
      return format_parameters(whole());
    case Unit::seconds:
      return x == 0 ? "0 s" : format_seconds(x);
    case Unit::tokens_per_second:
      return format_count(whole()) + " tokens/s";
    case Unit::bytes_per_second:
      return fmt::format("{:.4g} GB/s", x / kGiga);
    case Unit::flops:
      return fmt::format("{:.4g} TFLOP/s", x / kTera);
    case Unit::fraction:
      return fmt::format("{:.1f} %", 100 * x);
    case Unit::factor:
      return fmt::format("{:.3g}×", x);
    case Unit::gpu_hours:
      return figure(x) + " h";
    case Unit::days:
      return figure(x) + " d";
    case Unit::kwh:
      return figure(x) + " kWh";
    case Unit::money:
      return figure(x);
    case Unit::dollars:
      return "$" + figure(x);
  }
  return "";
}

}  // namespace

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "bytes";
    case Unit::count:
      return "count";
    case Unit::parameters:
      return "parameters";
    case Unit::seconds:
      return "seconds";
    case Unit::tokens_per_second:
      return "tokens/s";
    case Unit::bytes_per_second:
      return "bytes/s";
    case Unit::flops:
      return "FLOP/s";
    case Unit::fraction:
      return "fraction";
    case Unit::factor:
      return "factor";
    case Unit::gpu_hours:
      return "GPU-hours";
    case Unit::days:
      return "days";
    case Unit::kwh:
      return "kWh";
    case Unit::money:
      return "money";
    case Unit::dollars:
      return "US dollars";
  }
  return "";
}

double as_double(const Quantity& quantity) {
  return std::visit([](auto v) { return static_cast<double>(v); }, quantity.value);
}

std::string to_text(const Quantity& quantity) {
  const double x = as_double(quantity);
  const std::string_view sign = x < 0 ? "−" : quantity.is_change && x > 0 ? "+" : "";
  return std::string(sign) + magnitude(quantity, std::abs(x));
}

std::string to_number(const Quantity& quantity) {
  if (const auto* whole = std::get_if<std::int64_t>(&quantity.value))
    return fmt::format("{}", *whole);
  return fmt::format("{:.6g}", std::get<double>(quantity.value));
}

}  // namespace shardplan::report
