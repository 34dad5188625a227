#include "estimate/anchor.h"

#include <fmt/format.h>

#include <cmath>

namespace shardplan {

std::string describe(const PartFactors& factors) {
  constexpr std::array<std::string_view, kStepParts> kWords{"kernels",
                                                            "the host",
                                                            "links between GPUs",
                                                            "copies to and from the host",
                                                            "the optimizer on the CPU",
                                                            "NVMe drives"};
  constexpr double kShown = 0.005;  // two decimals would be 1.00
  std::string text;
  for (std::size_t p = 0; p < kStepParts; ++p)
    if (std::abs(factors[p] - 1) >= kShown)
      text += fmt::format("{}{:.2f} times{} for {}", text.empty() ? "" : ", ", factors[p],
                          text.empty() ? " as long" : "", kWords[p]);
  return text.empty() ? "as long as predicted for every part" : text;
}

}  // namespace shardplan
