// torch.optim.Adafactor: of a matrix a row and a column, of a vector the whole. A flat buffer is a
// vector, so that nothing is factored under ZeRO.
#include "optimizers/rules.h"

namespace shardplan::adafactor {
namespace {

std::int64_t row(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? ceil_div(t.numel, t.parameter->shape.back()) : 0;
}

std::int64_t column(const Updated& t, const Optimizer&) {
  if (!t.is_matrix()) return 0;
  const std::vector<std::int64_t>& shape = t.parameter->shape;
  return t.parameter->numel / shape[shape.size() - 2];
}

std::int64_t variance(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? 0 : t.numel;
}

/// The estimate of the variance; of a vector beside its gradient's square.
std::int64_t estimate(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? t.numel : 2 * t.numel;
}
std::int64_t matrices(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? t.numel : 0;
}

UpdatePasses passes(const Optimizer&) {
  return {22, 24};
}

constexpr std::array kStates{State{"row_var", StateType::plan, row},
                             State{"col_var", StateType::plan, column},
                             State{"variance", StateType::plan, variance}};
constexpr std::array kLooped{Temporary{.elements = estimate}};
constexpr std::array kListed{Temporary{.of = Temporary::Of::all, .elements = matrices}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::for_loop,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kLooped},
                               Variant{.implementation = OptimizerImplementation::foreach,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kListed}};
constexpr std::array<std::string_view, 1> kTypes{"Adafactor"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adafactor",
    .words = "Adafactor",
    .states = kStates,
    .variants = kVariants,
    .deepspeed = {.types = kTypes},
    .evidence = {{{Source::exact, "a record, and PyTorch's own states on a CPU"},
                  {Source::modelled, "torch/optim/_adafactor.py read: PyTorch 2.11 stops"},
                  {Source::exact, "DeepSpeed's own states on two CPU ranks"}}},
    .stops = {"",
              "PyTorch 2.11's Adafactor stops at sharded parameters: its in-place powers "
              "change their placement",
              ""},
    .source = "torch/optim/_adafactor.py",
};

}  // namespace shardplan::adafactor
