#include "engine/self_attention.h"

#include "engine/ring_attention.h"

namespace shardplan::validator {
namespace {

class WholeAttention final : public SelfAttention {
 public:
  explicit WholeAttention(Backend& device) : device_(device) {}
  void begin_step(Arena&) override {}
  void begin_backward(Arena&) override {}
  void forward(const AttentionForward& o) const override { device_.attention_forward(o); }
  void backward(const AttentionBackward& o) const override { device_.attention_backward(o); }

 private:
  Backend& device_;
};

}  // namespace

std::unique_ptr<SelfAttention> make_self_attention(const Runtime& runtime, const Heads& heads,
                                                   DType dtype) {
  if (runtime.context.size() > 1)
    return std::make_unique<RingAttention>(runtime.device, runtime.context, heads, dtype);
  return std::make_unique<WholeAttention>(runtime.device);
}

}  // namespace shardplan::validator
