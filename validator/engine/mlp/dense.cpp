// One MLP for all tokens: up, activation, down. Ranks that share each layer have a part of its
// inner width each.
#include "engine/mlp/mlp.h"

namespace shardplan::validator {
namespace {

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const DecoderSpec& spec, const BlockParameters& parameters, std::int64_t rows,
           DType dtype)
      : spec_(spec), parameters_(parameters), rows_(rows), dtype_(dtype) {}

  MlpActivations allocate(Arena& arena, const std::string& name, Keep keep,
                          const MlpActivations& shared) const override {
    MlpActivations a;
    a.up = arena.allocate(name + ".up", Category::activations, dtype_, {rows_, spec_.up_width()});
    a.activated = keep == Keep::products ? shared.activated : activated(arena, name);
    return a;
  }

  MlpActivations allocate_shared(Arena& arena) const override {
    MlpActivations a;
    a.activated = activated(arena, "renewed");
    return a;
  }

  void forward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
               const Tensor& x, const Tensor& result) const override {
    repeat(ranks, p, a, x);
    const TensorRanks& tensor = ranks.tensor;
    const Tensor addend = tensor.addend(result, tensor.values());
    const Tensor bias = tensor.first() ? p.block.weight(parameters_.down_bias) : Tensor{};
    tensor.device().linear_forward(addend, a.activated, p.block.weight(parameters_.down_weight),
                                   bias);
    tensor.sum(result, addend);
  }

  void repeat(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
              const Tensor& x) const override {
    const TensorRanks& tensor = ranks.tensor;
    tensor.device().linear_forward(a.up, tensor.gather(x, tensor.values()),
                                   p.block.weight(parameters_.up_weight),
                                   p.block.weight(parameters_.up_bias));
    renew(ranks, a, x);
  }

  void renew(const MlpRanks& ranks, const MlpActivations& a, const Tensor& /*x*/) const override {
    ranks.tensor.device().activation_forward(spec_.activation, a.activated, a.up);
  }

  void backward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                const Tensor& x, const Tensor& dresult) const override {
    const TensorRanks& tensor = ranks.tensor;
    /// Of y = input·wᵀ + b: the gradients of w and b, then of the input, in its place.
    const auto linear = [&](int w, int b, const Tensor& dy, const Tensor& input) {
      const bool add = p.block.gradient.accumulate;
      tensor.device().linear_backward_weight(p.block.slope(w), dy, input, add);
      if (b >= 0) tensor.device().linear_backward_bias(p.block.slope(b), dy, add);
      tensor.device().linear_backward_input(input, dy, p.block.weight(w));
    };
    linear(parameters_.down_weight, parameters_.down_bias,
           tensor.gather(dresult, tensor.gradients()), a.activated);
    tensor.device().activation_backward(spec_.activation, a.up, a.activated);
    const Tensor read = tensor.gather(x, tensor.values());
    linear(parameters_.up_weight, parameters_.up_bias, a.up, read);
    tensor.sum(x, read);
  }

 private:
  Tensor activated(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".activated", Category::activations, dtype_, {rows_, spec_.inner});
  }

  DecoderSpec spec_;  ///< of this rank's part
  BlockParameters parameters_;
  std::int64_t rows_;
  DType dtype_;
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const DecoderSpec& spec, const BlockParameters& parameters,
                                    std::int64_t rows, DType dtype) {
  return std::make_unique<DenseMlp>(spec, parameters, rows, dtype);
}

}  // namespace shardplan::validator
