// Our flash kernels as an implementation of Attention.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_layout.h"

namespace shardplan::validator::cuda {
namespace {

class FlashAttention : public Attention {
 public:
  std::string name() const override { return "flash kernels"; }

  bool supports(DType dtype, const Heads& heads, const OtherKeys& /*others*/) const override {
    // Whole 16-byte accesses, in tiles of at most 128 elements.
    return size_of(dtype) == 2 && heads.head_dim % 8 == 0 && heads.head_dim <= 128;
  }

  void forward(const Launch& launch, const AttentionForward& o) override {
    flash_forward(launch, o);
  }

  void backward(const Launch& launch, const AttentionBackward& o) override {
    const float* deltas = attention_deltas(launch, o);
    flash_backward_queries(launch, o, deltas);
    flash_backward_keys(launch, o, deltas);
  }
};

}  // namespace

std::unique_ptr<Attention> make_flash_attention() {
  return std::make_unique<FlashAttention>();
}

}  // namespace shardplan::validator::cuda
