// The rates of a GPU's datasheet, by the format of the numbers that are multiplied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan {

enum class PeakRate : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp6, fp4, int8 };

/// Their names in data files and jobs.
inline constexpr std::array<std::string_view, 8> kPeakRateNames{"fp32", "tf32", "bf16", "fp16",
                                                                "fp8",  "fp6",  "fp4",  "int8"};

/// Dense peak rates in FLOP/s, in operations/s for int8; nullopt where the chip has no such unit.
class PeakFlops {
 public:
  std::optional<double>& operator[](PeakRate rate) { return at_[static_cast<std::size_t>(rate)]; }
  const std::optional<double>& operator[](PeakRate rate) const {
    return at_[static_cast<std::size_t>(rate)];
  }

  /// Calls `visit` with the name of each rate and the rate.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < at_.size(); ++i) visit(kPeakRateNames[i], at_[i]);
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i < at_.size(); ++i) visit(kPeakRateNames[i], at_[i]);
  }

 private:
  std::array<std::optional<double>, kPeakRateNames.size()> at_;
};

}  // namespace shardplan
