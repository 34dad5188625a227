#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {

void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                       const Tensor& positions, std::int64_t sequence) {
  dispatch(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = y.width();
    const T* places = optional_data<T>(positions);
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      const std::int32_t token = tokens.as<std::int32_t>()[r];
      const T* word = token < 0 ? nullptr : table.as<T>() + token * width;
      T* out = y.as<T>() + r * width;
      for (std::int64_t i = 0; i < width; ++i) {
        const Wide<T> value = word == nullptr ? Wide<T>(0) : widen(word[i]);
        out[i] = static_cast<T>(
            places == nullptr ? value : value + widen(places[r % sequence * width + i]));
      }
    }
  });
}

void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                        const Tensor& tokens, std::int64_t sequence) {
  dispatch(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = dy.width();
    T* places = optional_data<T>(dpositions);
    for (std::int64_t r = 0; r < dy.rows(); ++r) {
      const std::int32_t token = tokens.as<std::int32_t>()[r];
      T* word = token < 0 ? nullptr : dtable.as<T>() + token * width;
      const T* d = dy.as<T>() + r * width;
      for (std::int64_t i = 0; i < width; ++i) {
        if (word != nullptr) word[i] = static_cast<T>(widen(word[i]) + widen(d[i]));
        if (places == nullptr) continue;
        T& place = places[r % sequence * width + i];
        place = static_cast<T>(widen(place) + widen(d[i]));
      }
    }
  });
}

}  // namespace shardplan::validator::host
