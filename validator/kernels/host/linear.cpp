#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using View = Eigen::Map<Matrix<T>>;

template <typename T>
View<T> matrix(const Tensor& x) {
  return View<T>(x.as<T>(), x.rows(), x.width());
}

/// The matrix in the type it is computed in; no copy where that is the storage type.
template <typename T>
auto widened(const Tensor& x) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return matrix<T>(x);
  } else {
    return Matrix<Wide<T>>(matrix<T>(x).template cast<Wide<T>>());
  }
}

template <typename T>
using Strided = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;

/// Which of so many equal shares of a matrix's rows.
struct Band {
  std::int64_t index, bands;
};

template <typename T>
Strided<T> strided(const Columns& x, const Band& band) {
  const std::int64_t rows = x.of.rows() / band.bands;
  return Strided<T>(x.of.as<T>() + band.index * rows * x.of.width() + x.first, rows, x.count,
                    Eigen::OuterStride<>(x.of.width()));
}

template <typename T>
Matrix<Wide<T>> operand(const Columns& x, bool transposed, const Band& band) {
  const Matrix<Wide<T>> wide = strided<T>(x, band).template cast<Wide<T>>();
  return transposed ? Matrix<Wide<T>>(wide.transpose()) : wide;
}

template <typename T, typename Product>
void store(const Tensor& to, const Product& product, bool accumulate) {
  View<T> out = matrix<T>(to);
  if (accumulate) {
    const Matrix<Wide<T>> total = out.template cast<Wide<T>>() + Matrix<Wide<T>>(product);
    out = total.template cast<T>();
  } else if constexpr (std::is_same_v<T, Wide<T>>) {
    out.noalias() = product;
  } else {
    out = Matrix<Wide<T>>(product).template cast<T>();
  }
}

}  // namespace

void linear_forward(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) {
  dispatch(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    Matrix<Wide<T>> product = widened<T>(x) * widened<T>(w).transpose();
    if (!bias.empty()) {
      const View<T> b(bias.as<T>(), 1, bias.numel());
      product.rowwise() += b.template cast<Wide<T>>().row(0);
    }
    matrix<T>(y) = product.template cast<T>();
  });
}

void linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) {
  dispatch(dx.dtype, [&](auto zero) {
    using T = decltype(zero);
    store<T>(dx, widened<T>(dy) * widened<T>(w), false);
  });
}

void linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x, bool accumulate) {
  dispatch(dw.dtype, [&](auto zero) {
    using T = decltype(zero);
    store<T>(dw, widened<T>(dy).transpose() * widened<T>(x), accumulate);
  });
}

void linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) {
  dispatch(db.dtype, [&](auto zero) {
    using T = decltype(zero);
    store<T>(db.view({1, db.numel()}), widened<T>(dy).colwise().sum(), accumulate);
  });
}

void multiply_columns(const ColumnProduct& o) {
  dispatch(o.c.of.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (Band band{0, o.bands}; band.index < o.bands; ++band.index) {
      Matrix<Wide<T>> product =
          operand<T>(o.a, o.a_transposed, band) * operand<T>(o.b, o.b_transposed, band);
      product *= static_cast<Wide<T>>(o.scale);
      Strided<T> c = strided<T>(o.c, band);
      if (o.accumulate) product += c.template cast<Wide<T>>();
      c = product.template cast<T>();
    }
  });
}

}  // namespace shardplan::validator::host
