// transformers' Adafactor, as Trainer sets it up: no first moment, no relative step. It computes in
// fp32: of 16-bit tensors it makes copies first, the parameter's and the gradient's. The names of
// a loop's last turn live on until they are bound again: the update of the tensor before is still
// there while the next one's gradient is squared.
#include "optimizers/rules.h"

namespace shardplan::adafactor_transformers {
namespace {

/// exp_avg_sq_row: all but the last dimension.
std::int64_t row(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? ceil_div(t.numel, t.parameter->shape.back()) : 0;
}

/// exp_avg_sq_col: all but the last but one.
std::int64_t column(const Updated& t, const Optimizer&) {
  if (!t.is_matrix()) return 0;
  const std::vector<std::int64_t>& shape = t.parameter->shape;
  return t.parameter->numel / shape[shape.size() - 2];
}

std::int64_t variance(const Updated& t, const Optimizer&) {
  return t.is_matrix() ? 0 : t.numel;
}

/// In fp32, read and written: the parameter's root mean square (1), the gradient's square and its
/// sum with epsilon (2 + 2), two means (2), the estimate (1), its product with the gradient (3),
/// its root mean square (1), the division and the product with the rate (2 + 2), the negative (2),
/// the sum with the parameter (3): 84 bytes an element. Of 16-bit tensors three copies besides, of
/// 6 bytes each: 102 bytes in all.
///
/// Calls of a matrix of 16 bits: casts of the gradient and of the parameter, and of both states,
/// which changes nothing (4), two root mean squares, each a norm in a function of Python and a
/// division (6), the square in another and its sum (3), two states (6), the estimate (7), its
/// product (1), the clipping (3), the rate (1), the sum with the parameter and its copy (3). In 32
/// bits there are neither the two casts nor the copy; a vector's estimate is a root and its state
/// is one, of no mean.
UpdatePasses passes(const Optimizer&) {
  return {.count = 21, .operations = 31, .widened = 15, .of_matrices = 11, .widening = 3};
}

constexpr std::array kStates{
    State{"exp_avg_sq_row", StateType::fp32, row}, State{"exp_avg_sq_col", StateType::fp32, column},
    State{"exp_avg_sq", StateType::fp32, variance}, State{"RMS", StateType::fp32, one_scalar}};
constexpr std::array kTemporaries{
    Temporary{.count = 2, .type = StateType::widened},
    Temporary{.count = 2, .type = StateType::fp32},
    Temporary{.of = Temporary::Of::previous, .type = StateType::fp32}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::for_loop,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kTemporaries}};
constexpr std::array<std::string_view, 1> kSpellings{"transformers_adafactor"};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "adafactor_transformers",
    .words = "Adafactor of transformers",
    .spellings = kSpellings,
    .states = kStates,
    .variants = kVariants,
    .evidence = {{{Source::exact, "its own step on a CPU, and a record"},
                  {Source::modelled, "transformers/optimization.py read"},
                  {Source::modelled, "transformers/optimization.py read"}}},
    .stops = {"",
              "transformers 5.17's Adafactor stops at sharded parameters: its states are plain "
              "tensors beside their DTensors",
              ""},
    .source = "transformers/optimization.py",
};

}  // namespace shardplan::adafactor_transformers
