#include "device/nf4.h"

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {

void widen_nf4(const Tensor& to, const Nf4Matrix& from) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(from.codes.address);
  const auto scale_of = [&](std::int64_t block) {
    if (from.outer.empty()) return from.scales.as<float>()[block];
    const float* outer = from.outer.as<float>();
    return outer[0] + outer[1 + block / kNf4ScaleBlock] *
                          static_cast<float>(from.scales.as<std::int8_t>()[block]);
  };
  dispatch(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t count = to.numel();
    for (std::int64_t begin = 0; begin < count; begin += kNf4Block) {
      const float scale = scale_of(begin / kNf4Block);
      for (std::int64_t i = begin; i < std::min(begin + kNf4Block, count); ++i) {
        const unsigned both = codes[i / 2];
        const unsigned code = i % 2 == 0 ? both >> 4U : both & 15U;
        to.as<T>()[i] = static_cast<T>(kNf4Values[code] * scale);
      }
    }
  });
}

}  // namespace shardplan::validator::host
