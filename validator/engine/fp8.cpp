#include "engine/fp8.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace shardplan::validator {
namespace {

/// Numbers that a scale and its reciprocal take: products read the latter, at 16 bytes.
constexpr std::int64_t kScale = 4;
constexpr std::int64_t numbers_of(std::int64_t scales) {
  return (2 * scales + kScale - 1) / kScale * kScale;
}

/// Whether ranks that share a layer have columns of the matrix, and what they make of theirs is
/// summed; else they have rows of it.
bool sums_over_ranks(Linear l) {
  return l == Linear::out || l == Linear::down;
}

/// Of a block with experts up and down are one for each of them, expert by expert.
std::int64_t matrices_of(const DecoderSpec& spec) {
  const auto all = static_cast<std::int64_t>(kLinears.size());
  return spec.experts ? all + 2 * (spec.experts_here() - 1) : all;
}

bool is_of_expert(const DecoderSpec& spec, Linear l) {
  return spec.experts && (l == Linear::up || l == Linear::down);
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

BlockFp8 allocate_fp8(Arena& arena, Fp8Recipe recipe, const DecoderSpec& spec,
                      std::int64_t all_rows, std::int64_t expert_rows) {
  if (recipe == Fp8Recipe::none) return {};
  const bool by_rows = recipe == Fp8Recipe::rowwise, frozen = spec.lora.has_value();
  const std::int64_t ranks = spec.share.ranks;
  std::int64_t bytes = 0, numbers = kScale;
  for (const Linear l : kLinears) {
    const auto [outputs, inputs] = sides_of(spec, l);
    const std::int64_t rows = is_of_expert(spec, l) ? expert_rows : all_rows;
    const std::int64_t x = rows * inputs, w = outputs * inputs, dy = rows * outputs;
    bytes = std::max({bytes, x + w, frozen ? dy + w : 2 * dy + std::max(x, w)});
    if (!by_rows) continue;
    const std::int64_t of_rows = numbers_of(rows), of_outputs = numbers_of(outputs);
    const std::int64_t of_inputs = numbers_of(inputs);
    // Scales of w that ranks have found together wait while x has its own.
    const bool shared = ranks > 1 && !is_of_expert(spec, l);
    const std::int64_t waiting = shared && !frozen && !sums_over_ranks(l) ? of_inputs : 0;
    numbers = std::max(
        {numbers, of_rows + of_outputs, of_rows + of_inputs + (frozen ? 0 : of_outputs) + waiting});
  }
  BlockFp8 fp8{.recipe = recipe,
               .room = arena.allocate("fp8.operands", Category::workspace, DType::i8, {bytes}),
               .scales = arena.allocate("fp8.scales", Category::workspace, DType::f32, {numbers}),
               .found = {},
               .frozen = frozen,
               .kept = {}};
  // Both operands of a sum over ranks, or a gradient and its matrix.
  if (const std::int64_t most = by_rows ? all_rows + spec.hidden : 2; ranks > 1)
    fp8.found = arena.allocate("fp8.found", Category::workspace, DType::f32, {ranks * most});
  return fp8;
}

Tensor allocate_fp8_scales(Arena& arena, const std::string& name, Fp8Recipe recipe,
                           const DecoderSpec& spec) {
  if (recipe != Fp8Recipe::tensorwise) return {};
  return arena.allocate(name + ".fp8_scales", Category::activations, DType::f32,
                        {matrices_of(spec), 2, kScale});
}

Tensor Fp8Linear::kept(Operand which) const {
  if (by_rows()) return {};
  const std::int64_t matrix = static_cast<std::int64_t>(linear_) + 2 * expert_;
  const std::int64_t i = 2 * matrix + static_cast<std::int64_t>(which);
  return fp8_.kept.slice(kScale * i, 2).view({2, 1});
}

bool Fp8Linear::divides_inputs() const {
  return shared_ && sums_over_ranks(linear_);
}

void Fp8Linear::find(const std::vector<Joint>& joint) const {
  if (joint.empty()) return;
  std::int64_t all = 0;
  for (const Joint& j : joint) all += j.scales.width();
  const Tensor found = fp8_.found.slice(0, ranks_.size() * all).view({ranks_.size(), all});
  const Tensor here = found.slice(ranks_.rank() * all, all);
  std::int64_t first = 0;
  for (const Joint& j : joint) {
    const std::int64_t count = j.scales.width();
    device_.find_magnitudes({.from = j.from, .to = here.slice(first, count), .over = j.over});
    first += count;
  }
  ranks_.gather_in_place(found);
  first = 0;
  for (const Joint& j : joint) {
    const std::int64_t count = j.scales.width();
    device_.join_scales({.found = {found, first, count},
                         .to = j.scales,
                         .type = j.type,
                         .power_of_two = by_rows()});
    first += count;
  }
}

void Fp8Linear::forward(const Tensor& y, const Tensor& x, const Tensor& w,
                        const Tensor& bias) const {
  Shelf shelf(fp8_);
  const Fp8Matrix a = shelf.take(x.rows(), x.width(), DType::e4m3, kept(Operand::input));
  const Fp8Matrix b = shelf.take(w.rows(), w.width(), DType::e4m3, kept(Operand::weight));
  const Fp8Over over = by_rows() ? Fp8Over::rows : Fp8Over::whole;
  const bool joint_x = is_joint(Operand::input), joint_w = is_joint(Operand::weight);
  std::vector<Joint> joint;
  if (joint_x) joint.push_back({x, over, DType::e4m3, a.scales});
  if (joint_w) joint.push_back({w, over, DType::e4m3, b.scales});
  find(joint);
  device_.cast_fp8({.from = x, .to = a, .by_rows = by_rows(), .scaled = joint_x});
  device_.cast_fp8({.from = w, .to = b, .by_rows = by_rows(), .scaled = joint_w});
  device_.multiply_fp8({.c = y,
                        .a = a,
                        .b = b,
                        .bias = bias,
                        .by_rows = by_rows(),
                        .fast = true,
                        .counted = counted_});
}

void Fp8Linear::repeat(const Tensor& x, const Tensor& w) const {
  if (by_rows()) return;
  std::vector<Joint> joint;
  const auto scale = [&](const Tensor& from, Operand which) {
    if (is_joint(which)) {
      joint.push_back({from, Fp8Over::whole, DType::e4m3, kept(which)});
    } else {
      device_.cast_fp8({.from = from, .to = {{}, kept(which)}});
    }
  };
  if (!fp8_.frozen) scale(x, Operand::input);
  scale(w, Operand::weight);
  find(joint);
}

void Fp8Linear::backward(const Tensor& dw, bool accumulate, const Tensor& dx, const Tensor& dy,
                         const Tensor& x, const Tensor& w) const {
  Shelf shelf(fp8_);
  const DType type = by_rows() ? DType::e4m3 : DType::e5m2;
  const bool joint = divides_outputs(), trained = !dw.empty();
  const Tensor one = by_rows() ? Tensor{} : shelf.take_scales(1);
  const Fp8Matrix slope = shelf.take(dy.rows(), dy.width(), type, one);
  const Fp8Matrix slope_turned =
      trained ? shelf.take(dy.width(), dy.rows(), type, one) : Fp8Matrix{};
  const Tensor w_scales = joint && by_rows() ? shelf.take_scales(w.width()) : kept(Operand::weight);
  if (joint) {
    std::vector<Joint> parts{{dy, by_rows() ? Fp8Over::rows : Fp8Over::whole, type, slope.scales}};
    if (by_rows()) parts.push_back({w, Fp8Over::columns, DType::e4m3, w_scales});
    find(parts);
  }
  device_.cast_fp8({.from = dy,
                    .to = slope,
                    .turned = by_rows() ? Fp8Matrix{} : slope_turned,
                    .type = type,
                    .by_rows = by_rows(),
                    .scaled = joint});
  if (by_rows() && trained)  // each rank has its columns of dy whole
    device_.cast_fp8({.from = dy, .to = {}, .turned = slope_turned, .type = type, .by_rows = true});
  /// x or w, turned; one after the other in the same place. Without scales: they are found.
  const auto turned = [&](const Tensor& from, const Tensor& scales) {
    const Shelf::Mark mark = shelf.mark();
    const Fp8Matrix to = shelf.take(from.width(), from.rows(), DType::e4m3, scales);
    shelf.reset(mark);
    device_.cast_fp8({.from = from,
                      .to = {{}, scales},
                      .turned = to,
                      .by_rows = by_rows(),
                      .scaled = !scales.empty()});
    return to;
  };
  if (trained)
    device_.multiply_fp8({.c = dw,
                          .a = slope_turned,
                          .b = turned(x, kept(Operand::input)),
                          .by_rows = by_rows(),
                          .sums_tokens = true,
                          .accumulate = accumulate,
                          .counted = counted_});
  device_.multiply_fp8(
      {.c = dx, .a = slope, .b = turned(w, w_scales), .by_rows = by_rows(), .counted = counted_});
}

}  // namespace shardplan::validator
