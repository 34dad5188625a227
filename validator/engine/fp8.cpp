#include "engine/fp8.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardplan::validator {
namespace {

constexpr std::int64_t kMatrices = static_cast<std::int64_t>(kLinears.size());
/// Numbers that a scale and its reciprocal take: products read the latter, at 16 bytes.
constexpr std::int64_t kScale = 4;
constexpr std::int64_t numbers_of(std::int64_t scales) {
  return (2 * scales + kScale - 1) / kScale * kScale;
}

/// Hands out parts of the room and of the scales, one after the other.
class Shelf {
 public:
  explicit Shelf(const BlockFp8& fp8) : fp8_(fp8) {}

  /// An operand with scales of its own for each row, or with those of `scales`.
  Fp8Matrix take(std::int64_t rows, std::int64_t columns, DType type, const Tensor& scales) {
    Tensor values = fp8_.room.slice(bytes_, rows * columns);
    bytes_ += rows * columns;
    values.dtype = type;
    return {values.view({rows, columns}), scales.empty() ? take_scales(rows) : scales};
  }
  Tensor take_scales(std::int64_t count) {
    const Tensor scales = fp8_.scales.slice(numbers_, 2 * count).view({2, count});
    numbers_ += numbers_of(count);
    return scales;
  }
  /// From here on what follows takes the same place as what is there.
  struct Mark {
    std::int64_t bytes, numbers;
  };
  Mark mark() const { return {bytes_, numbers_}; }
  void reset(Mark mark) { std::tie(bytes_, numbers_) = std::pair(mark.bytes, mark.numbers); }

 private:
  const BlockFp8& fp8_;
  std::int64_t bytes_ = 0, numbers_ = 0;
};

}  // namespace

BlockFp8 allocate_fp8(Arena& arena, Fp8Recipe recipe, const DecoderSpec& spec, std::int64_t rows) {
  if (recipe == Fp8Recipe::none) return {};
  std::int64_t bytes = 0, numbers = kScale;
  for (const Linear l : kLinears) {
    const auto [outputs, inputs] = sides_of(spec, l);
    const std::int64_t x = rows * inputs, w = outputs * inputs, dy = rows * outputs;
    bytes = std::max({bytes, x + w, 2 * dy + std::max(x, w)});
    if (recipe == Fp8Recipe::rowwise)
      numbers = std::max(numbers, numbers_of(rows) + numbers_of(outputs) + numbers_of(inputs));
  }
  return {.recipe = recipe,
          .room = arena.allocate("fp8.operands", Category::workspace, DType::i8, {bytes}),
          .scales = arena.allocate("fp8.scales", Category::workspace, DType::f32, {numbers}),
          .kept = {}};
}

Tensor allocate_fp8_scales(Arena& arena, const std::string& name, Fp8Recipe recipe) {
  if (recipe != Fp8Recipe::tensorwise) return {};
  return arena.allocate(name + ".fp8_scales", Category::activations, DType::f32,
                        {kMatrices, 2, kScale});
}

Tensor Fp8Linear::kept(Operand which) const {
  if (by_rows()) return {};
  const auto i = 2 * static_cast<std::int64_t>(linear_) + static_cast<std::int64_t>(which);
  return fp8_.kept.slice(kScale * i, 2).view({2, 1});
}

void Fp8Linear::forward(const Tensor& y, const Tensor& x, const Tensor& w,
                        const Tensor& bias) const {
  Shelf shelf(fp8_);
  const Fp8Matrix a = shelf.take(x.rows(), x.width(), DType::e4m3, kept(Operand::input));
  const Fp8Matrix b = shelf.take(w.rows(), w.width(), DType::e4m3, kept(Operand::weight));
  device_.cast_fp8({.from = x, .to = a, .by_rows = by_rows()});
  device_.cast_fp8({.from = w, .to = b, .by_rows = by_rows()});
  device_.multiply_fp8({.c = y, .a = a, .b = b, .bias = bias, .by_rows = by_rows(), .fast = true});
}

void Fp8Linear::repeat(const Tensor& x, const Tensor& w) const {
  if (by_rows()) return;
  device_.cast_fp8({.from = x, .to = {{}, kept(Operand::input)}});
  device_.cast_fp8({.from = w, .to = {{}, kept(Operand::weight)}});
}

void Fp8Linear::backward(const Tensor& dw, bool accumulate, const Tensor& dx, const Tensor& dy,
                         const Tensor& x, const Tensor& w) const {
  Shelf shelf(fp8_);
  const DType type = by_rows() ? DType::e4m3 : DType::e5m2;
  const std::int64_t rows = dy.rows(), outputs = dy.width();
  const Tensor one = by_rows() ? Tensor{} : shelf.take_scales(1);
  const Fp8Matrix slope = shelf.take(rows, outputs, type, one);
  const Fp8Matrix slope_turned = shelf.take(outputs, rows, type, one);
  device_.cast_fp8(
      {.from = dy, .to = slope, .turned = slope_turned, .type = type, .by_rows = by_rows()});
  /// x or w, turned; one after the other in the same place.
  const auto turned = [&](const Tensor& from, Operand which) {
    const Shelf::Mark mark = shelf.mark();
    const Tensor scales = kept(which);
    const Fp8Matrix to = shelf.take(from.width(), from.rows(), DType::e4m3, scales);
    shelf.reset(mark);
    device_.cast_fp8(
        {.from = from, .to = {{}, scales}, .turned = to, .by_rows = by_rows(), .scaled = true});
    return to;
  };
  device_.multiply_fp8({.c = dw,
                        .a = slope_turned,
                        .b = turned(x, Operand::input),
                        .by_rows = by_rows(),
                        .accumulate = accumulate});
  device_.multiply_fp8(
      {.c = dx, .a = slope, .b = turned(w, Operand::weight), .by_rows = by_rows()});
}

}  // namespace shardplan::validator
