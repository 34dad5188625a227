// Elements to 4 bits. Loops that a compiler makes vectors of: a model has thousands of millions of
// elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "device/nf4.h"
#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// A block of elements; beyond the last one zeros.
using Block = std::array<float, kNf4Block>;
using Codes = std::array<std::uint8_t, kNf4Block>;

void find_codes(const Block& block, float scale, Codes& codes) {
  Block scaled{};
  for (std::size_t i = 0; i < block.size(); ++i) scaled[i] = block[i] / scale;
  std::array<std::int32_t, kNf4Block> below{};  // codes whose upper boundary is below the element
  for (std::size_t c = 0; c + 1 < kNf4Values.size(); ++c) {
    const float boundary = nf4_boundary(c);
    for (std::size_t i = 0; i < below.size(); ++i) below[i] += scaled[i] > boundary ? 1 : 0;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(below[i]);
}

/// The codes of a block of `count` elements; returns its scale.
float quantize_block(const Block& block, std::int64_t count, std::uint8_t* to) {
  float most = 0;
  for (const float x : block) most = std::max(most, std::abs(x));
  Codes codes{};
  find_codes(block, most > 0 ? most : 1, codes);
  if (count % 2 != 0) codes[static_cast<std::size_t>(count)] = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i += 2)
    to[i / 2] = static_cast<std::uint8_t>(codes[i] << 4U | codes[i + 1]);
  return most;
}

/// Calls visit(number, first scale, scales) for each group of scales that share one.
template <typename Visit>
void for_each_group(const std::vector<float>& scales, Visit&& visit) {
  constexpr auto kGroup = static_cast<std::size_t>(kNf4ScaleBlock);
  for (std::size_t begin = 0; begin < scales.size(); begin += kGroup)
    visit(begin / kGroup, begin,
          std::span(scales).subspan(begin, std::min(kGroup, scales.size() - begin)));
}

void quantize_scales(const std::vector<float>& scales, const Nf4Matrix& to) {
  auto* outer = to.outer.as<float>();
  auto* codes = to.scales.as<std::int8_t>();
  double all = 0;
  for_each_group(scales, [&](std::size_t, std::size_t, std::span<const float> group) {
    double sum = 0;
    for (const float scale : group) sum += static_cast<double>(scale);
    all += static_cast<double>(static_cast<float>(sum));
  });
  const float mean = outer[0] = static_cast<float>(all / static_cast<double>(scales.size()));
  for_each_group(scales, [&](std::size_t g, std::size_t first, std::span<const float> group) {
    float most = 0;
    for (const float scale : group) most = std::max(most, std::abs(scale - mean));
    outer[1 + g] = most / kNf4ScaleSteps;
    for (std::size_t i = 0; i < group.size(); ++i)
      codes[first + i] =
          most > 0
              ? static_cast<std::int8_t>(std::lround((group[i] - mean) / most * kNf4ScaleSteps))
              : std::int8_t{0};
  });
}

}  // namespace

void quantize_nf4(const Nf4Matrix& to, const Tensor& from) {
  auto* codes = reinterpret_cast<std::uint8_t*>(to.codes.address);
  const std::int64_t count = from.numel();
  std::vector<float> scales;
  scales.reserve(static_cast<std::size_t>(ceil_div(count, kNf4Block)));
  dispatch(from.dtype, [&](auto zero) {
    const auto* values = from.as<decltype(zero)>();
    for (std::int64_t begin = 0; begin < count; begin += kNf4Block) {
      const std::int64_t here = std::min(kNf4Block, count - begin);
      Block block{};
      for (std::int64_t i = 0; i < here; ++i)
        block[static_cast<std::size_t>(i)] = static_cast<float>(widen(values[begin + i]));
      scales.push_back(quantize_block(block, here, codes + begin / 2));
    }
  });
  if (!to.outer.empty()) return quantize_scales(scales, to);
  std::copy(scales.begin(), scales.end(), to.scales.as<float>());
}

}  // namespace shardplan::validator::host
