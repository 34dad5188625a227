#include "engine/lora/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "device/nf4.h"

namespace shardplan::validator {
namespace {

using Codes = std::array<std::uint8_t, kNf4Block>;

/// The nearest code of each; of two as near the lower one. Loops that a compiler makes vectors of:
/// a model has thousands of millions of elements.
void find_codes(std::span<const float> block, float scale, Codes& codes) {
  std::array<float, kNf4Block> scaled{};
  for (std::size_t i = 0; i < block.size(); ++i) scaled[i] = block[i] / scale;
  std::array<std::int32_t, kNf4Block> below{};  // codes whose upper boundary is below the element
  for (std::size_t c = 0; c + 1 < kNf4Values.size(); ++c) {
    const float boundary = (kNf4Values[c] + kNf4Values[c + 1]) / 2;
    for (std::size_t i = 0; i < below.size(); ++i) below[i] += scaled[i] > boundary ? 1 : 0;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(below[i]);
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void quantize_scales(const std::vector<float>& scales, Nf4Bytes& to) {
  constexpr float kSteps = 127;
  const auto count = static_cast<double>(scales.size());
  const auto mean = static_cast<float>(std::accumulate(scales.begin(), scales.end(), 0.0) / count);
  std::vector<float> outer{mean};
  std::vector<std::int8_t> codes;
  for (std::size_t begin = 0; begin < scales.size(); begin += kNf4ScaleBlock) {
    const std::size_t end = std::min(begin + std::size_t{kNf4ScaleBlock}, scales.size());
    float most = 0;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, std::abs(scales[i] - mean));
    outer.push_back(most / kSteps);
    for (std::size_t i = begin; i < end; ++i)
      codes.push_back(
          most > 0 ? static_cast<std::int8_t>(std::lround((scales[i] - mean) / most * kSteps))
                   : std::int8_t{0});
  }
  to.scales = bytes_of(codes);
  to.outer = bytes_of(outer);
}

}  // namespace

Nf4Bytes quantize_nf4(std::span<const float> values, bool doubled) {
  Nf4Bytes result;
  result.codes.resize((values.size() + 1) / 2);
  std::vector<float> scales;
  Codes codes{};
  for (std::size_t begin = 0; begin < values.size(); begin += kNf4Block) {
    const auto block =
        values.subspan(begin, std::min(std::size_t{kNf4Block}, values.size() - begin));
    float most = 0;
    for (const float x : block) most = std::max(most, std::abs(x));
    scales.push_back(most);
    find_codes(block, most > 0 ? most : 1, codes);
    for (std::size_t i = 0; i < block.size(); ++i)
      result.codes[(begin + i) / 2] |=
          static_cast<std::byte>(i % 2 == 0 ? codes[i] << 4 : codes[i]);
  }
  if (doubled) {
    quantize_scales(scales, result);
  } else {
    result.scales = bytes_of(scales);
  }
  return result;
}

}  // namespace shardplan::validator
