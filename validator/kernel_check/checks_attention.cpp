// Attention by every implementation that serves a shape, not only by the one that runs would take.
#include <fmt/core.h>

#include "kernel_check/checks.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda_backend.h"

namespace shardplan::validator {
namespace {

const Heads kCases[] = {
    {.batch = 2, .sequence = 256, .query_heads = 4, .key_value_heads = 4, .head_dim = 64},
    {.batch = 1, .sequence = 384, .query_heads = 8, .key_value_heads = 2, .head_dim = 128},
    {.batch = 2, .sequence = 131, .query_heads = 6, .key_value_heads = 3, .head_dim = 64},
    {.batch = 1, .sequence = 77, .query_heads = 2, .key_value_heads = 1, .head_dim = 80},
    {.batch = 1, .sequence = 1, .query_heads = 2, .key_value_heads = 2, .head_dim = 64},
};

void check_one(Laboratory& lab, DType dtype, const Heads& heads, cuda::Attention& attention,
               cuda::CudaBackend& backend_of_device) {
  lab.begin("attention, " + attention.name(),
            fmt::format("{} × {}, {}+{} heads of {}", heads.batch, heads.sequence,
                        heads.query_heads, heads.key_value_heads, heads.head_dim),
            dtype);
  const Pair qkv = lab.normal({heads.rows(), heads.packed_width()});
  const Pair out = lab.output({heads.rows(), heads.query_width()});
  const Pair lse = lab.statistic({heads.batch, heads.query_heads, heads.sequence});
  const Pair dout = lab.normal({heads.rows(), heads.query_width()});
  const Pair dqkv = lab.output({heads.rows(), heads.packed_width()});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const AttentionForward forward{
            .heads = heads, .out = of(out), .lse = of(lse), .qkv = of(qkv)};
        const AttentionBackward backward{.heads = heads,
                                         .dqkv = of(dqkv),
                                         .dout = of(dout),
                                         .out = of(out),
                                         .lse = of(lse),
                                         .qkv = of(qkv)};
        if (of.is_device()) {
          attention.forward(backend_of_device.launch(), forward);
          attention.backward(backend_of_device.launch(), backward);
        } else {
          backend.attention_forward(forward);
          backend.attention_backward(backward);
        }
      },
      {{"out", out}, {"lse", lse}, {"dqkv", dqkv}}, 1.5);
}

}  // namespace

StepShapes largest_checked() {
  StepShapes shapes;
  shapes.heads = {
      .batch = 2, .sequence = 512, .query_heads = 8, .key_value_heads = 8, .head_dim = 128};
  shapes.rows = shapes.heads.rows();
  shapes.hidden = 8192;
  shapes.inner = 8192;
  shapes.padded_vocabulary = 51200;
  return shapes;
}

void check_attention(Laboratory& lab, DType dtype) {
  auto& device = dynamic_cast<cuda::CudaBackend&>(lab.device());
  for (const auto& attention : device.attentions()) {
    for (const Heads& heads : kCases) {
      if (attention->supports(dtype, heads)) check_one(lab, dtype, heads, *attention, device);
    }
  }
}

}  // namespace shardplan::validator
