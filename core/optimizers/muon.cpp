// Muon for the matrices inside a network, AdamW for everything else: torch.optim.Muon beside
// torch.optim.AdamW, or DeepSpeed's MuonWithAuxAdam.
#include <algorithm>

#include "optimizers/rules.h"

namespace shardplan::muon {
namespace {

constexpr int kIterations = 5;  ///< of Newton-Schulz

/// DeepSpeed goes by dimensions and names (deepspeed/__init__.py set_optimizer_flags).
/// torch.optim.Muon refuses all but two dimensions and wants hidden layers: no embedding, no head.
bool takes(const Parameter& p, Given given) {
  if (p.name.find("embed") != std::string::npos || p.name.find("lm_head") != std::string::npos)
    return false;
  if (given == Given::flat) return p.shape.size() > 1;
  return p.shape.size() == 2 && p.kind != ParameterKind::embedding;
}

bool orthogonal(const Updated& t) {
  return t.parameter != nullptr ? takes(*t.parameter, t.given) : t.special;
}

std::int64_t momentum(const Updated& t, const Optimizer&) {
  return t.given != Given::flat && orthogonal(t) ? t.numel : 0;
}
/// DeepSpeed makes the momentum beside the gradients, of whole tensors at stages 1 and 2
/// (runtime/zero/stage_1_and_2.py get_flat_partition); without partitions it has none, and takes
/// the plain gradient (zero/muon/muon_optimizer.py step).
std::int64_t flat_momentum(const Updated& t, const Optimizer&) {
  return t.given == Given::flat && orthogonal(t) && t.updates_special ? t.whole : 0;
}
std::int64_t other(const Updated& t, const Optimizer&) {
  return orthogonal(t) ? 0 : t.numel;
}
std::int64_t other_step(const Updated& t, const Optimizer&) {
  return t.given != Given::flat && !orthogonal(t) ? 1 : 0;
}

/// Rows and columns as Newton-Schulz turns them: the smaller first.
struct Sides {
  std::int64_t small = 0, large = 0;
};
Sides sides(const Updated& t) {
  if (!t.is_matrix() || !takes(*t.parameter, t.given)) return {};
  const std::int64_t last = t.parameter->shape.back();
  const std::int64_t rows = t.parameter->shape[t.parameter->shape.size() - 2];
  return {std::min(rows, last), std::max(rows, last)};
}
std::int64_t matrix(const Updated& t, const Optimizer&) {
  const Sides s = sides(t);
  return s.small * s.large;
}
std::int64_t gram(const Updated& t, const Optimizer&) {
  const Sides s = sides(t);
  return s.small * s.small;
}

/// X Xᵀ, its square, and their sum times X. Shards are gathered for each, and each rank computes
/// its rows.
void products(const Updated& t, const Optimizer&, std::vector<UpdateProduct>& list) {
  const Sides s = sides(t);
  if (s.small == 0) return;
  const std::int64_t copies = t.parameter->numel / (s.small * s.large);  // experts in one tensor
  const auto calls = static_cast<std::int32_t>(kIterations * copies);
  const std::int64_t rows =
      t.given == Given::shards
          ? std::max<std::int64_t>(1, ceil_div(s.small * t.numel, t.parameter->numel))
          : s.small;
  list.push_back({rows, s.small, s.large, calls});
  list.push_back({rows, s.small, s.small, calls});
  list.push_back({rows, s.large, s.small, calls});
}

UpdatePasses passes(const Optimizer&) {
  return {9, 40};
}

constexpr std::array kStates{State{"momentum_buffer", StateType::plan, momentum},
                             State{"momentum_buffer", StateType::gradient, flat_momentum},
                             State{"step", StateType::fp32, other_step},
                             State{"exp_avg", StateType::plan, other},
                             State{"exp_avg_sq", StateType::plan, other}};
/// The update, the iterate in bf16 before and after, the Gram matrix and its polynomial
/// (torch/optim/_muon.py _zeropower_via_newtonschulz).
constexpr std::array kTemporaries{
    Temporary{.elements = matrix},
    Temporary{.count = 2, .type = StateType::half, .elements = matrix},
    Temporary{.count = 2, .type = StateType::half, .elements = gram}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::for_loop,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kTemporaries}};
constexpr std::array<std::string_view, 1> kOthers{"adamw"};
constexpr std::array kOptions{OptimizerOption{.key = "others",
                                              .kind = OptimizerOption::Kind::choice,
                                              .choices = kOthers,
                                              .help = "what takes the parameters that Muon does "
                                                      "not"}};
constexpr std::array<std::string_view, 1> kTypes{"Muon"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "muon",
    .words = "Muon",
    .states = kStates,
    .variants = kVariants,
    .options = kOptions,
    .takes = takes,
    .products = products,
    .deepspeed = {.types = kTypes},
    .megatron = "muon",
    .evidence = {{{Source::exact, "PyTorch's own states on a CPU"},
                  {Source::exact, "PyTorch's own states on two CPU ranks"},
                  {Source::exact, "DeepSpeed's own states on two CPU ranks, at every stage"}}},
    .source = "torch/optim/_muon.py; DeepSpeed runtime/zero/muon, stage_1_and_2.py, stage3.py",
};

}  // namespace shardplan::muon
