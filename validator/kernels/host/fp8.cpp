#include "device/fp8.h"

#include <cmath>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The matrix in fp32, in which it is scaled; turned where it is to be written so.
Matrix<float> widened(const Tensor& x, bool turned) {
  Matrix<float> wide;
  dispatch(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    wide = Eigen::Map<Matrix<T>>(x.as<T>(), x.rows(), x.width()).template cast<float>();
  });
  return turned ? Matrix<float>(wide.transpose()) : wide;
}

/// The largest magnitude; what is not a number has none.
float magnitude(const float* first, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::fmax(largest, std::abs(first[i]));
  return largest;
}

void write_scale(const Tensor& scales, std::int64_t i, float magnitude, DType type,
                 bool power_of_two) {
  const std::int64_t count = scales.width();
  float* to = scales.as<float>();
  to[count + i] = fp8_scale(magnitude, type, power_of_two);
  to[i] = 1 / to[count + i];
}

void find_scales(const Fp8Cast& o, const Tensor& scales, const Matrix<float>& wide) {
  const std::int64_t count = scales.width(), each = wide.size() / count;
  for (std::int64_t i = 0; i < count; ++i)
    write_scale(scales, i, magnitude(wide.data() + i * each, each), o.type, o.by_rows);
}

void write(const Fp8Cast& o, const Fp8Matrix& to, const Tensor& scales, const Matrix<float>& wide) {
  const std::int64_t each = wide.size() / scales.width();
  const float* factors = scales.as<float>() + scales.width();
  for (std::int64_t i = 0; i < wide.size(); ++i)
    to.values.as<std::uint8_t>()[i] = encode_fp8(wide.data()[i] * factors[i / each], o.type);
}

template <typename T>
Matrix<Wide<T>> operand(const Fp8Matrix& x) {
  Matrix<Wide<T>> wide(x.values.rows(), x.values.width());
  for (std::int64_t i = 0; i < wide.size(); ++i)
    wide.data()[i] =
        static_cast<Wide<T>>(decode_fp8(x.values.as<std::uint8_t>()[i], x.values.dtype));
  return wide;
}

/// What each row's results are multiplied with.
template <typename T>
Eigen::Matrix<Wide<T>, Eigen::Dynamic, 1> reciprocals(const Fp8Matrix& x) {
  Eigen::Matrix<Wide<T>, Eigen::Dynamic, 1> all(x.values.rows());
  const std::int64_t count = x.scales.width();
  for (std::int64_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<Wide<T>>(x.scales.as<float>()[count == 1 ? 0 : i]);
  return all;
}

}  // namespace

void cast_fp8(const Fp8Cast& o) {
  if (!o.to.scales.empty()) {
    const Matrix<float> wide = widened(o.from, false);
    if (!o.scaled) find_scales(o, o.to.scales, wide);
    if (!o.to.values.empty()) write(o, o.to, o.to.scales, wide);
  }
  if (o.turned.values.empty()) return;
  const Matrix<float> wide = widened(o.from, true);
  const Tensor& scales = o.by_rows ? o.turned.scales : o.to.scales;
  if (o.by_rows && !o.scaled) find_scales(o, scales, wide);
  write(o, o.turned, scales, wide);
}

void find_magnitudes(const Fp8Magnitudes& o) {
  const Matrix<float> wide = widened(o.from, o.over == Fp8Over::columns);
  const std::int64_t count = o.to.numel(), each = wide.size() / count;
  for (std::int64_t i = 0; i < count; ++i)
    o.to.as<float>()[i] = magnitude(wide.data() + i * each, each);
}

void join_scales(const Fp8JointScales& o) {
  const Tensor& found = o.found.of;
  for (std::int64_t i = 0; i < o.found.count; ++i) {
    float largest = 0;
    for (std::int64_t rank = 0; rank < found.rows(); ++rank)
      largest = std::fmax(largest, found.as<float>()[rank * found.width() + o.found.first + i]);
    write_scale(o.to, i, largest, o.type, o.power_of_two);
  }
}

void multiply_fp8(const Fp8Product& o) {
  dispatch(o.c.dtype, [&](auto zero) {
    using T = decltype(zero);
    Matrix<Wide<T>> product = operand<T>(o.a) * operand<T>(o.b).transpose();
    product = reciprocals<T>(o.a).asDiagonal() * product * reciprocals<T>(o.b).asDiagonal();
    if (!o.bias.empty()) {
      const Eigen::Map<Matrix<T>> bias(o.bias.as<T>(), 1, o.bias.numel());
      product.rowwise() += bias.template cast<Wide<T>>().row(0);
    }
    Eigen::Map<Matrix<T>> c(o.c.as<T>(), o.c.rows(), o.c.width());
    if (o.accumulate) product += c.template cast<Wide<T>>();
    c = product.template cast<T>();
  });
}

}  // namespace shardplan::validator::host
