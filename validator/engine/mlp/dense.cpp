// One MLP for all tokens: up, activation, down. Ranks that share each layer have a part of its
// inner width each.
#include "engine/mlp/mlp.h"

namespace shardplan::validator {
namespace {

class DenseMlp final : public Mlp {
 public:
  DenseMlp(const DecoderSpec& spec, std::int64_t rows, DType dtype)
      : spec_(spec), rows_(rows), dtype_(dtype) {}

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

  void renew(const MlpRanks& ranks, const MlpActivations& a, const Tensor& /*x*/) const override {
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
    renew(ranks, a, x);
  }

  Tensor activated(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".activated", Category::activations, dtype_, {rows_, spec_.inner});
  }

  DecoderSpec spec_;  ///< of this rank's part
  std::int64_t rows_;
  DType dtype_;
};

}  // namespace

std::unique_ptr<Mlp> make_dense_mlp(const DecoderSpec& spec, std::int64_t rows, DType dtype) {
  return std::make_unique<DenseMlp>(spec, rows, dtype);
}

}  // namespace shardplan::validator
