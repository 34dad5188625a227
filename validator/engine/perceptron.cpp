#include "engine/perceptron.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardplan::validator {
namespace {

/// Columns of the last layer: a multiple of 8, so that rows of logits are aligned.
std::int64_t padded_classes(const MlpSpec& spec) {
  return round_up(spec.widths.back(), 8);
}

class Perceptron final : public Network {
 public:
  Perceptron(const MlpSpec& spec, std::int64_t rows, DType dtype)
      : spec_(spec), rows_(rows), dtype_(dtype) {
    for (std::int64_t i = 0; i < layers(); ++i) {
      Unit unit{.name = fmt::format("layers.{}", i)};
      // torch.nn.Linear's own range is uniform; this is a normal of the same variance,
      // 1/(3·inputs).
      const float stddev = 1 / std::sqrt(3.0F * static_cast<float>(width(i)));
      weight_ = add_parameter(unit, "weight", {outputs(i), width(i)},
                              {.kind = Init::Kind::normal,
                               .stddev = stddev,
                               .rows = spec_.widths[static_cast<std::size_t>(i + 1)]});
      bias_ = add_parameter(unit, "bias", {outputs(i)}, {.kind = Init::Kind::zeros});
      units_.push_back(std::move(unit));
    }
    number_elements(units_);
  }

  const std::vector<Unit>& units() const override { return units_; }
  bool tied() const override { return false; }
  std::int64_t rows() const override { return rows_; }

  StepShapes shapes() const override {
    StepShapes s{.dtype = dtype_, .rows = rows_, .hidden = width(0)};
    s.inner = *std::max_element(spec_.widths.begin(), spec_.widths.end());
    s.padded_vocabulary = padded_classes(spec_);
    s.logit_rows = rows_;
    for (const Unit& unit : units_) s.largest_unit = std::max(s.largest_unit, unit.numel);
    return s;
  }

  void prepare(Runtime& rt, int) override {
    samples_ =
        rt.arena.allocate("inputs", Category::other, statistic_type(dtype_), {rows_, width(0)});
    targets_ = rt.arena.allocate("targets", Category::other, DType::i32, {rows_});
  }

  void begin_step(Runtime& rt) override {
    inputs_.clear();
    sums_.clear();
    for (std::int64_t i = 0; i < layers(); ++i) {
      const bool last = i + 1 == layers();
      inputs_.push_back(activation(rt, fmt::format("layers.{}.input", i), width(i)));
      sums_.push_back(rt.arena.allocate(fmt::format("layers.{}.sum", i),
                                        last ? Category::logits_and_loss : Category::activations,
                                        dtype_, {rows_, outputs(i)}));
    }
    losses_ =
        rt.arena.allocate("losses", Category::logits_and_loss, statistic_type(dtype_), {rows_});
  }

  void forward(Runtime& rt, Weights& weights, Gradients&, const Pass&, const MicroBatch& micro,
               const Tensor& loss) override {
    upload_inputs(rt, micro.batch);
    rt.device.upload(targets_, std::as_bytes(std::span(micro.batch.targets)));
    rt.device.cast(inputs_.front(), samples_);
    weights.prefetch(0);
    for (std::int64_t i = 0; i < layers(); ++i) {
      const bool last = i + 1 == layers();
      const std::size_t at = static_cast<std::size_t>(i);
      const Tensor w = weights.acquire(static_cast<int>(i));
      if (!last) weights.prefetch(static_cast<int>(i) + 1);
      rt.device.linear_forward(sums_[at], inputs_[at], parameter(i, w, weight_),
                               parameter(i, w, bias_));
      weights.release(static_cast<int>(i));
      if (i + 2 < layers()) weights.expect(static_cast<int>(i) + 2);
      if (last) continue;
      rt.device.activation_forward(Activation::relu, inputs_[at + 1], sums_[at]);
    }
    rt.device.cross_entropy({.logits = sums_.back(),
                             .losses = losses_,
                             .targets = targets_,
                             .vocabulary = spec_.widths.back(),
                             .gradient_scale = micro.gradient_scale});
    rt.device.sum(loss, losses_, !micro.first);
  }

  /// The gradient of a layer's input takes the input's place, that of its sum the sum's.
  void backward(Runtime& rt, Weights& weights, Gradients& gradients, const Pass&) override {
    for (std::int64_t i = layers() - 1; i >= 0; --i) {
      const int u = static_cast<int>(i);
      const std::size_t at = static_cast<std::size_t>(i);
      const Tensor w = weights.acquire(u);
      if (i > 0) weights.prefetch(u - 1);
      const OpenGradient gradient = gradients.open(u);
      rt.device.linear_backward_weight(parameter(i, gradient.flat, weight_), sums_[at], inputs_[at],
                                       gradient.accumulate);
      rt.device.linear_backward_bias(parameter(i, gradient.flat, bias_), sums_[at],
                                     gradient.accumulate);
      if (i > 0) {
        rt.device.linear_backward_input(inputs_[at], sums_[at], parameter(i, w, weight_));
        rt.device.activation_backward(Activation::relu, sums_[at - 1], inputs_[at]);
      }
      gradients.close(u);
      weights.release(u);
      if (i > 1) weights.expect(u - 2);
    }
  }

  /// It is on one stage.
  Tensor given(const Pass&) const override { return {}; }
  Tensor made(const Pass&) const override { return {}; }

 private:
  std::int64_t layers() const { return static_cast<std::int64_t>(spec_.widths.size()) - 1; }
  std::int64_t width(std::int64_t i) const { return spec_.widths[static_cast<std::size_t>(i)]; }
  std::int64_t outputs(std::int64_t i) const {
    return i + 1 == layers() ? padded_classes(spec_) : width(i + 1);
  }
  Tensor parameter(std::int64_t layer, const Tensor& flat, int which) const {
    return units_[static_cast<std::size_t>(layer)].parameter(flat, which);
  }
  Tensor activation(Runtime& rt, std::string name, std::int64_t columns) const {
    return rt.arena.allocate(std::move(name), Category::activations, dtype_, {rows_, columns});
  }
  void upload_inputs(Runtime& rt, const Batch& batch) {
    if (samples_.dtype == DType::f64) {
      const std::vector<double> wide(batch.inputs.begin(), batch.inputs.end());
      rt.device.upload(samples_, std::as_bytes(std::span(wide)));
    } else {
      rt.device.upload(samples_, std::as_bytes(std::span(batch.inputs)));
    }
  }

  MlpSpec spec_;
  std::int64_t rows_;
  DType dtype_;
  std::vector<Unit> units_;
  int weight_ = 0, bias_ = 0;          ///< in every unit
  Tensor samples_, targets_;           ///< [rows, inputs] fp32, [rows] int32
  std::vector<Tensor> inputs_, sums_;  ///< by layer: [rows, in], [rows, out]
  Tensor losses_;                      ///< [rows]
};

}  // namespace

std::unique_ptr<Network> make_perceptron(const MlpSpec& spec, std::int64_t rows, DType dtype) {
  return std::make_unique<Perceptron>(spec, rows, dtype);
}

}  // namespace shardplan::validator
