// One MLP for all tokens: up, activation, down. Ranks that share each layer have a part of its
// inner width each.
#include "engine/mlp/mlp.h"

namespace shardplan::validator {
namespace {

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const DecoderSpec& spec, std::int64_t rows, DType dtype, ProductsAgain again)
      : spec_(spec), rows_(rows), dtype_(dtype), up_again_(again.has(Linear::up)) {}

  MlpActivations allocate(Arena& arena, const std::string& name, Keep keep,
                          const MlpActivations& shared) const override {
    MlpActivations a;
    a.up = keep == Keep::products && up_again_ ? shared.up : up(arena, name);
    a.activated = keep == Keep::products ? shared.activated : activated(arena, name);
    return a;
  }

  MlpActivations allocate_shared(Arena& arena) const override {
    MlpActivations a;
    if (up_again_) a.up = up(arena, "renewed");
    a.activated = activated(arena, "renewed");
    return a;
  }

  void forward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
               const Tensor& x, const Tensor& result) const override {
    activate(ranks, p, a, x);
    const TensorRanks& tensor = ranks.tensor;
    const Tensor addend = tensor.addend(result, tensor.values());
    p.linears.forward(Linear::down, addend, a.activated, tensor.first());
    tensor.sum(result, addend);
  }

  void repeat(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
              const Tensor& x) const override {
    activate(ranks, p, a, x);
    p.linears.repeat_read(Linear::down, a.activated);
  }

  void renew(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
             const Tensor& x) const override {
    if (up_again_) return activate(ranks, p, a, x);
    ranks.tensor.device().activation_forward(spec_.activation, a.activated, a.up);
  }

  bool backward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                const Tensor& x, const Tensor& dresult) const override {
    const TensorRanks& tensor = ranks.tensor;
    const Tensor dy = tensor.gather(dresult, tensor.gradients());
    if (!p.linears.backward(Linear::down, dy, a.activated, a.activated)) return false;
    tensor.device().activation_backward(spec_.activation, a.up, a.activated);
    const Tensor read = tensor.gather(x, tensor.values());
    if (!p.linears.backward(Linear::up, a.up, read, read)) return false;
    tensor.sum(x, read);
    return true;
  }

 private:
  /// Up to what the last product reads.
  void activate(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                const Tensor& x) const {
    const TensorRanks& tensor = ranks.tensor;
    p.linears.forward(Linear::up, a.up, tensor.gather(x, tensor.values()));
    tensor.device().activation_forward(spec_.activation, a.activated, a.up);
  }

  Tensor up(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".up", Category::activations, dtype_, {rows_, spec_.up_width()});
  }
  Tensor activated(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".activated", Category::activations, dtype_, {rows_, spec_.inner});
  }

  DecoderSpec spec_;  ///< of this rank's part
  std::int64_t rows_;
  DType dtype_;
  bool up_again_;  ///< under Keep::products
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const DecoderSpec& spec, std::int64_t rows, DType dtype,
                                    ProductsAgain again) {
  return std::make_unique<DenseMlp>(spec, rows, dtype, again);
}

}  // namespace shardplan::validator
