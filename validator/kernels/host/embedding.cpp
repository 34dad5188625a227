#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {

void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                       const Tensor& positions, const RowPlaces& places) {
  dispatch(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = y.width();
    const T* learned = optional_data<T>(positions);
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      const std::int32_t token = tokens.as<std::int32_t>()[r];
      const T* word = token < 0 ? nullptr : table.as<T>() + token * width;
      const T* position = learned == nullptr ? nullptr : learned + places.of(r) * width;
      T* out = y.as<T>() + r * width;
      for (std::int64_t i = 0; i < width; ++i) {
        const Wide<T> value = word == nullptr ? Wide<T>(0) : widen(word[i]);
        out[i] = static_cast<T>(position == nullptr ? value : value + widen(position[i]));
      }
    }
  });
}

void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                        const Tensor& tokens, const RowPlaces& places) {
  dispatch(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = dy.width();
    T* learned = optional_data<T>(dpositions);
    for (std::int64_t r = 0; r < dy.rows(); ++r) {
      const std::int32_t token = tokens.as<std::int32_t>()[r];
      T* word = token < 0 ? nullptr : dtable.as<T>() + token * width;
      T* position = learned == nullptr ? nullptr : learned + places.of(r) * width;
      const T* d = dy.as<T>() + r * width;
      for (std::int64_t i = 0; i < width; ++i) {
        if (word != nullptr) word[i] = static_cast<T>(widen(word[i]) + widen(d[i]));
        if (position != nullptr) position[i] = static_cast<T>(widen(position[i]) + widen(d[i]));
      }
    }
  });
}

}  // namespace shardplan::validator::host
