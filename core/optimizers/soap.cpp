// SOAP (soap.py of github.com/nikhilvyas/SOAP): Adam in the eigenbases of Shampoo's matrices, one
// for each dimension of a tensor.
#include <algorithm>

#include "optimizers/rules.h"

namespace shardplan::soap {
namespace {

/// Dimensions of a tensor that have matrices (init_preconditioner): not those above the limit, and
/// of vectors only when asked to. A flat buffer is a vector of no tensor, and has none.
std::int64_t side(const Updated& t, const Optimizer& o, std::size_t dimension) {
  if (t.parameter == nullptr || dimension >= t.parameter->shape.size()) return 0;
  const std::int64_t length = t.parameter->shape[dimension];
  const bool vector = !t.is_matrix() && option_of(o, "precondition_1d") == 0;
  return vector || static_cast<double>(length) > option_of(o, "max_precond_dim") ? 0 : length;
}

template <std::size_t dimension>
std::int64_t square(const Updated& t, const Optimizer& o) {
  const std::int64_t length = side(t, o, dimension);
  return length * length;
}

/// The largest tensor, or one of its matrices while its eigenvectors are found again.
std::int64_t largest(const Updated& t, const Optimizer& o) {
  return std::max({t.numel, square<0>(t, o), square<1>(t, o), square<2>(t, o)});
}

/// Of each dimension: the matrix' update, the gradient's and the momentum's turns to the bases, and
/// two turns back. The QR decomposition of every tenth step is left out.
void products(const Updated& t, const Optimizer& o, std::vector<UpdateProduct>& list) {
  if (t.parameter == nullptr) return;
  for (std::size_t d = 0; d < std::min<std::size_t>(3, t.parameter->shape.size()); ++d) {
    const std::int64_t length = side(t, o, d);
    if (length == 0) continue;
    const std::int64_t rest = t.parameter->numel / length;
    list.push_back({length, length, rest, 1, StateType::plan});
    list.push_back({rest, length, length, 4, StateType::plan});
  }
}

UpdatePasses passes(const Optimizer&) {
  return {24, 30};
}

constexpr std::array kStates{State{"exp_avg"},
                             State{"exp_avg_sq"},
                             State{"GG", StateType::fp32, square<0>},
                             State{"GG", StateType::fp32, square<1>},
                             State{"GG", StateType::fp32, square<2>},
                             State{"Q", StateType::fp32, square<0>},
                             State{"Q", StateType::fp32, square<1>},
                             State{"Q", StateType::fp32, square<2>}};
/// The projected gradient, the denominator, the update, and two on its way back.
constexpr std::array kTemporaries{Temporary{.count = 5, .elements = largest}};
constexpr std::array kVariants{Variant{.implementation = OptimizerImplementation::for_loop,
                                       .one_by_one = true,
                                       .passes = passes,
                                       .temporaries = kTemporaries}};
constexpr std::array kOptions{
    OptimizerOption{.key = "max_precond_dim",
                    .kind = OptimizerOption::Kind::number,
                    .default_value = 10'000,
                    .least = 1,
                    .most = 1'000'000,
                    .help = "longer dimensions, such as vocabularies, have no matrix"},
    OptimizerOption{.key = "precondition_1d", .help = "vectors have a matrix too"}};

}  // namespace

extern const OptimizerDescription kDescription;
constinit const OptimizerDescription kDescription{
    .name = "soap",
    .words = "SOAP",
    .states = kStates,
    .variants = kVariants,
    .options = kOptions,
    .products = products,
    .evidence = {{{Source::exact, "soap.py's own states on a CPU"},
                  {Source::modelled, "soap.py stops"},
                  {Source::modelled, "soap.py read: a vector has moments alone"}}},
    .stops = {"", "SOAP's soap.py stops at sharded parameters: it adds DTensors to plain tensors",
              ""},
    .stops_at_half = "SOAP's soap.py stops at gradients that are not fp32: its matrices are",
    .source = "soap.py of github.com/nikhilvyas/SOAP",
};

}  // namespace shardplan::soap
