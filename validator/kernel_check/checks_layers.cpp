// Norms, rotary embedding, activations, linear layers.
#include <fmt/core.h>

#include "kernel_check/checks.h"

namespace shardplan::validator {
namespace {

std::string text(std::int64_t rows, std::int64_t cols) {
  return fmt::format("{} × {}", rows, cols);
}

/// What a norm reads and writes: with gradients added to what is there, and alone.
struct NormTensors {
  NormTensors(Laboratory& lab, std::int64_t rows, std::int64_t width)
      : x(lab.normal({rows, width})),
        branch(lab.normal({rows, width})),
        sum(lab.output({rows, width})),
        weight(lab.ones_and_noise({width})),
        bias(lab.normal({width}, 0.1)),
        out(lab.output({rows, width})),
        mean(lab.statistic({rows})),
        rstd(lab.statistic({rows})),
        dout(lab.normal({rows, width})),
        dx(lab.normal({rows, width})),
        dx_alone(lab.output({rows, width})),
        dx_frozen(lab.output({rows, width})),
        dweight(lab.normal({width})),
        dbias(lab.normal({width})),
        dweight_alone(lab.output({width})),
        dbias_alone(lab.output({width})) {}

  Pair x, branch, sum, weight, bias, out, mean, rstd, dout, dx, dx_alone, dx_frozen, dweight, dbias,
      dweight_alone, dbias_alone;
};

std::vector<Laboratory::Result> results_of(const NormTensors& t, bool layer) {
  std::vector<Laboratory::Result> results = {{"sum", t.sum},
                                             {"out", t.out},
                                             {"rstd", t.rstd},
                                             {"dx +=", t.dx},
                                             {"dweight +=", t.dweight},
                                             {"dx", t.dx_alone},
                                             {"dx, frozen", t.dx_frozen},
                                             {"dweight", t.dweight_alone}};
  if (layer) {
    results.push_back({"mean", t.mean});
    results.push_back({"dbias +=", t.dbias});
    results.push_back({"dbias", t.dbias_alone});
  }
  return results;
}

void check_norm(Laboratory& lab, DType dtype, NormKind kind, std::int64_t rows,
                std::int64_t width) {
  const char* name = kind == NormKind::rms ? "RMS norm" : "layer norm";
  lab.begin(name, text(rows, width), dtype);
  const NormTensors t(lab, rows, width);
  const bool layer = kind == NormKind::layer;
  const auto operation = [&](Backend& backend, const Side& of) {
    backend.norm_forward({.kind = kind,
                          .epsilon = 1e-5F,
                          .out = of(t.out),
                          .mean = layer ? of(t.mean) : Tensor{},
                          .rstd = of(t.rstd),
                          .sum = of(t.sum),
                          .x = of(t.x),
                          .branch = of(t.branch),
                          .weight = of(t.weight),
                          .bias = layer ? of(t.bias) : Tensor{}});
    NormBackward backward{.kind = kind,
                          .dx = of(t.dx),
                          .accumulate_dx = true,
                          .dweight = of(t.dweight),
                          .dbias = layer ? of(t.dbias) : Tensor{},
                          .accumulate_weights = true,
                          .dout = of(t.dout),
                          .x = of(t.sum),
                          .mean = layer ? of(t.mean) : Tensor{},
                          .rstd = of(t.rstd),
                          .weight = of(t.weight)};
    backend.norm_backward(backward);
    backward.dx = of(t.dx_alone);
    backward.dweight = of(t.dweight_alone);
    backward.dbias = layer ? of(t.dbias_alone) : Tensor{};
    backward.accumulate_dx = backward.accumulate_weights = false;
    backend.norm_backward(backward);
    backward.dx = of(t.dx_frozen);
    backward.dweight = backward.dbias = {};
    backend.norm_backward(backward);
  };
  // x_hat is computed from the rounded sum on the device, from the exact one on the host.
  lab.run(operation, results_of(t, layer), 1.5);
}

void check_product(Laboratory& lab, DType dtype, std::int64_t rows, std::int64_t in,
                   std::int64_t out, bool with_bias) {
  lab.begin("linear", fmt::format("{} × {} → {}{}", rows, in, out, with_bias ? ", bias" : ""),
            dtype);
  const Pair x = lab.normal({rows, in});
  const Pair w = lab.normal({out, in}, 0.05);
  const Pair bias = lab.normal({out});
  const Pair y = lab.output({rows, out});
  const Pair dy = lab.normal({rows, out});
  const Pair dx = lab.output({rows, in});
  const Pair dw = lab.output({out, in});
  const Pair dw_sum = lab.normal({out, in});
  const Pair db = lab.output({out});
  const Pair db_sum = lab.normal({out});
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.linear_forward(of(y), of(x), of(w), with_bias ? of(bias) : Tensor{});
        backend.linear_backward_input(of(dx), of(dy), of(w));
        backend.linear_backward_weight(of(dw), of(dy), of(x), false);
        backend.linear_backward_weight(of(dw_sum), of(dy), of(x), true);
        backend.linear_backward_bias(of(db), of(dy), false);
        backend.linear_backward_bias(of(db_sum), of(dy), true);
      },
      {{"y", y}, {"dx", dx}, {"dw", dw}, {"dw +=", dw_sum}, {"db", db}, {"db +=", db_sum}});
}

const char* name_of(Activation kind) {
  switch (kind) {
    case Activation::swiglu:
      return "SwiGLU";
    case Activation::gelu_tanh:
      return "GELU (tanh)";
    case Activation::relu:
      return "ReLU";
  }
  return "";
}

}  // namespace

void check_norms(Laboratory& lab, DType dtype) {
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    check_norm(lab, dtype, kind, 300, 768);
    check_norm(lab, dtype, kind, 129, 1600);
    check_norm(lab, dtype, kind, 70, 4096);
    check_norm(lab, dtype, kind, 37, 8192);
    check_norm(lab, dtype, kind, 65, 100);  // no vector accesses
    check_norm(lab, dtype, kind, 3, 16);
  }
}

void check_linear(Laboratory& lab, DType dtype) {
  check_product(lab, dtype, 256, 512, 384, false);
  check_product(lab, dtype, 256, 512, 384, true);
  check_product(lab, dtype, 96, 784, 128, true);
  check_product(lab, dtype, 96, 128, 10, true);
  // As experts are given them: counts that share what was chosen for the largest.
  for (const std::int64_t rows : {1, 7, 288, 273, 263, 1149, 1021})
    check_product(lab, dtype, rows, 512, 384, false);
}

void check_activations(Laboratory& lab, DType dtype) {
  for (const Activation kind : {Activation::swiglu, Activation::gelu_tanh, Activation::relu}) {
    for (const std::int64_t width : {std::int64_t{1376}, std::int64_t{30}}) {
      const std::int64_t input = kind == Activation::swiglu ? 2 * width : width;
      lab.begin(name_of(kind), text(200, width), dtype);
      const Pair x = lab.normal({200, input}, 2.0);
      const Pair y = lab.output({200, width});
      const Pair dy = lab.normal({200, width});
      lab.run(
          [&](Backend& backend, const Side& of) {
            backend.activation_forward(kind, of(y), of(x));
            backend.activation_backward(kind, of(x), of(dy));
          },
          {{"y", y}, {"dx", x}});
    }
  }
}

void check_rotary(Laboratory& lab, DType dtype) {
  for (const std::int64_t head_dim : {std::int64_t{64}, std::int64_t{128}, std::int64_t{12}}) {
    const Heads heads{
        .batch = 2, .sequence = 33, .query_heads = 6, .key_value_heads = 2, .head_dim = head_dim};
    lab.begin("rotary", fmt::format("2 × 33, 6+2 heads of {}", head_dim), dtype);
    const Pair qkv = lab.normal({heads.rows(), heads.packed_width()});
    const Pair turned_back = lab.normal({heads.rows(), heads.packed_width()});
    const Pair table = lab.typed({heads.sequence, head_dim}, DType::f32, 0.7);
    lab.run(
        [&](Backend& backend, const Side& of) {
          backend.rotary(of(qkv), of(table), heads, false);
          backend.rotary(of(turned_back), of(table), heads, true);
        },
        {{"turned", qkv}, {"turned back", turned_back}});
  }
}

void check_head_norms(Laboratory& lab, DType dtype) {
  for (const std::int64_t head_dim : {std::int64_t{64}, std::int64_t{128}, std::int64_t{20}}) {
    const Heads heads{
        .batch = 3, .sequence = 201, .query_heads = 4, .key_value_heads = 2, .head_dim = head_dim};
    const std::int64_t normed = heads.query_heads + heads.key_value_heads;
    lab.begin("head norm", fmt::format("603, 4+2 heads of {}", head_dim), dtype);
    const Pair qkv = lab.normal({heads.rows(), heads.packed_width()});
    const Pair out = lab.output({heads.rows(), heads.packed_width()});
    const Pair rstd = lab.statistic({heads.rows(), normed});
    const Pair q_weight = lab.ones_and_noise({head_dim});
    const Pair k_weight = lab.ones_and_noise({head_dim});
    const Pair dqkv = lab.normal({heads.rows(), heads.packed_width()});
    const Pair dq_weight = lab.normal({head_dim});
    const Pair dk_weight = lab.normal({head_dim});
    lab.run(
        [&](Backend& backend, const Side& of) {
          backend.head_norm_forward({.heads = heads,
                                     .epsilon = 1e-6F,
                                     .out = of(out),
                                     .rstd = of(rstd),
                                     .qkv = of(qkv),
                                     .q_weight = of(q_weight),
                                     .k_weight = of(k_weight)});
          backend.head_norm_backward({.heads = heads,
                                      .dqkv = of(dqkv),
                                      .dq_weight = of(dq_weight),
                                      .dk_weight = of(dk_weight),
                                      .accumulate_weights = true,
                                      .qkv = of(qkv),
                                      .rstd = of(rstd),
                                      .q_weight = of(q_weight),
                                      .k_weight = of(k_weight)});
        },
        {{"out", out}, {"dqkv", dqkv}, {"dq_weight", dq_weight}, {"dk_weight", dk_weight}});
  }
}

}  // namespace shardplan::validator
