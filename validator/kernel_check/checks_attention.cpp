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

/// Some queries and other keys, as they meet where ranks share sequences.
struct OthersCase {
  const char* name;
  Heads heads;
  Span queries, keys;
};

const OthersCase kOthers[] = {
    {"all and the first half", kCases[0], {0, 256}, {0, 128}},
    {"the last half and all", kCases[0], {128, 128}, {0, 256}},
    {"all and the first half", kCases[1], {0, 384}, {0, 192}},
    {"the last half and all", kCases[1], {192, 192}, {0, 384}},
    {"odd rows", kCases[2], {30, 101}, {7, 70}},
    {"odd rows", kCases[3], {11, 66}, {0, 77}},
    {"a few", kCases[2], {130, 1}, {0, 131}},
};

/// Rows that take no part stay what they were: they begin with small numbers and are compared too.
void check_others(Laboratory& lab, DType dtype, const OthersCase& which, cuda::Attention& attention,
                  cuda::CudaBackend& backend_of_device) {
  constexpr double kSmall = 1e-2;
  const Heads& heads = which.heads;
  lab.begin("attention to others, " + attention.name(),
            fmt::format("{} × {}, {}+{} heads of {}, {}", heads.batch, heads.sequence,
                        heads.query_heads, heads.key_value_heads, heads.head_dim, which.name),
            dtype);
  const Pair qkv = lab.normal({heads.rows(), heads.packed_width()});
  const Pair keys = lab.normal({heads.rows(), 2 * heads.key_value_heads * heads.head_dim});
  const Pair out = lab.normal({heads.rows(), heads.query_width()}, kSmall);
  const Pair lse = lab.typed({heads.batch, heads.query_heads, heads.sequence}, DType::f32, kSmall);
  const Pair dout = lab.normal({heads.rows(), heads.query_width()});
  const Pair dqkv = lab.normal({heads.rows(), heads.packed_width()}, kSmall);
  lab.run(
      [&](Backend& backend, const Side& of) {
        const OtherKeys others{of(keys), which.queries, which.keys};
        const AttentionForward forward{
            .heads = heads, .out = of(out), .lse = of(lse), .qkv = of(qkv), .others = others};
        const AttentionBackward backward{.heads = heads,
                                         .dqkv = of(dqkv),
                                         .dout = of(dout),
                                         .out = of(out),
                                         .lse = of(lse),
                                         .qkv = of(qkv),
                                         .others = others};
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

void check_merge(Laboratory& lab, DType dtype, const Heads& heads, const Span& queries) {
  lab.begin("merging attention",
            fmt::format("{} × {}, {} heads of {}, rows {} + {}", heads.batch, heads.sequence,
                        heads.query_heads, heads.head_dim, queries.first, queries.count),
            dtype);
  const Shape statistics{heads.batch, heads.query_heads, heads.sequence};
  const Pair sum = lab.typed({heads.rows(), heads.query_width()}, DType::f32, 1.0);
  const Pair lse = lab.typed(statistics, DType::f32, 3.0);
  const Pair part = lab.normal({heads.rows(), heads.query_width()});
  const Pair part_lse = lab.typed(statistics, DType::f32, 3.0);
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.merge_attention({.heads = heads,
                                 .sum = of(sum),
                                 .lse = of(lse),
                                 .part = of(part),
                                 .part_lse = of(part_lse),
                                 .queries = queries});
      },
      {{"sum", sum}, {"lse", lse}});
}

/// Between the element type and fp32, and back.
void check_columns(Laboratory& lab, DType dtype, const Heads& heads, const Span& rows) {
  lab.begin("copies of columns",
            fmt::format("{} × {}, {} of {}, rows {} + {}", heads.batch, heads.sequence,
                        heads.query_width(), heads.packed_width(), rows.first, rows.count),
            dtype);
  const std::int64_t behind = heads.packed_width() - heads.query_width();
  const Pair packed = lab.normal({heads.rows(), heads.packed_width()});
  const Pair keys = lab.normal({heads.rows(), behind});
  const Pair wide = lab.typed({heads.rows(), behind}, DType::f32, 1.0);
  const Pair back = lab.normal({heads.rows(), heads.packed_width()});
  lab.run(
      [&](Backend& backend, const Side& of) {
        ColumnCopy o{.to = of(keys),
                     .from = of(packed),
                     .from_column = heads.query_width(),
                     .columns = behind,
                     .sequence = heads.sequence,
                     .rows = rows};
        backend.copy_columns(o);
        o.to = of(wide);
        o.accumulate = true;
        backend.copy_columns(o);
        backend.copy_columns({.to = of(back),
                              .to_column = heads.query_width(),
                              .from = of(wide),
                              .columns = behind,
                              .sequence = heads.sequence,
                              .rows = rows});
      },
      {{"keys", keys}, {"sum", wide}, {"back", back}});
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
      if (attention->supports(dtype, heads, {})) check_one(lab, dtype, heads, *attention, device);
    }
    for (const OthersCase& which : kOthers) {
      const OtherKeys others{Tensor{1, dtype, {1}}, which.queries, which.keys};
      if (attention->supports(dtype, which.heads, others))
        check_others(lab, dtype, which, *attention, device);
    }
  }
  for (const OthersCase& which : kOthers) {
    check_merge(lab, dtype, which.heads, which.queries);
    check_columns(lab, dtype, which.heads, which.keys);
  }
  const Heads odd{.batch = 3, .sequence = 9, .query_heads = 3, .key_value_heads = 1, .head_dim = 5};
  check_merge(lab, dtype, odd, {4, 5});
  check_columns(lab, dtype, odd, {2, 7});
}

}  // namespace shardplan::validator
