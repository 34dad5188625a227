// A router and experts, a gated MLP each, as Mixtral's (arXiv 2401.04088) and Qwen 3's:
//
//   x ─ router ─ softmax ─ the k largest ─────────────────────────────── weights ─┐
//   └─ copies in the order of experts ─ (to their ranks) ─ expert ─ (back) ─ Σ weight · row
//
// Sizes do not depend on what the router says. Without a capacity there are rows · k slots, and how
// they are shared out is read from the device once a layer and pass. With one, each expert has as
// many slots of every rank, used or not, and nothing is read.
#include <algorithm>
#include <span>

#include "engine/mlp/mlp.h"

namespace shardplan::validator {
namespace {

Columns all_columns(const Tensor& x) {
  return {x, 0, x.width()};
}

class ExpertMlp final : public Mlp {
 public:
  ExpertMlp(const DecoderSpec& spec, int router, const ExpertParameters& parameters,
            const ExpertSlots& slots, DType dtype, ProductsAgain again)
      : spec_(spec),
        router_(router),
        parameters_(parameters),
        rows_(slots.rows),
        capacity_(slots.capacity),
        multiple_(slots.multiple),
        slots_(slots.all(*spec.experts)),
        dtype_(dtype),
        again_(again) {}

  std::int64_t slots() const override { return slots_; }

  MlpActivations allocate(Arena& arena, const std::string& name, Keep keep,
                          const MlpActivations& shared) const override {
    const std::int64_t k = spec_.experts->per_token;
    const auto tensor = [&](const char* what, DType dtype, Shape shape) {
      return arena.allocate(name + "." + what, Category::activations, dtype, shape);
    };
    const bool products = keep == Keep::products;
    MlpActivations a = products ? shared : renewed(arena, name);
    a.logits = tensor("logits", dtype_, {rows_, spec_.experts->count});
    a.weights = tensor("weights", statistic_type(dtype_), {rows_, k});
    a.chosen = tensor("chosen", DType::i32, {rows_, k});
    a.places = tensor("places", DType::i32, {rows_, k});
    a.sources = tensor("sources", DType::i32, {slots_});
    a.counts = tensor("counts", DType::i32, {spec_.experts->count});
    if (!products || !again_.has(Linear::up)) a.up = up(arena, name);
    if (!products || !again_.has(Linear::down)) a.returned = returned(arena, name);
    a.counted = std::make_shared<std::vector<std::int32_t>>();
    return a;
  }

  MlpActivations allocate_shared(Arena& arena) const override {
    MlpActivations a = renewed(arena, "renewed");
    if (again_.has(Linear::up)) a.up = up(arena, "renewed");
    if (again_.has(Linear::down)) a.returned = returned(arena, "renewed");
    return a;
  }

  void forward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
               const Tensor& x, const Tensor& result) const override {
    run(ranks, p, a, x, ranks.tally);
    device(ranks).combine_rows(
        {.out = result, .slots = a.returned, .places = a.places, .weights = a.weights});
  }

  void repeat(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
              const Tensor& x) const override {
    run(ranks, p, a, x, nullptr);
  }

  void renew(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
             const Tensor& x) const override {
    dispatch(ranks, a, x);
    compute(ranks, p, a, again_.has(Linear::up), again_.has(Linear::down));
  }

  bool backward(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a,
                const Tensor& x, const Tensor& dresult) const override {
    Backend& on = device(ranks);
    on.combine_backward(
        {.slots = a.returned, .weights = a.weights, .places = a.places, .dout = dresult});
    ranks.experts->send(a.returned, spec_.experts_here());
    if (!linear_backward(ranks, p, Linear::down, a, ranks.experts->beyond(a.returned), a.activated))
      return false;
    on.activation_backward(spec_.activation, a.up, a.activated);
    if (!linear_backward(ranks, p, Linear::up, a, a.up, a.entered)) return false;
    ranks.experts->send(a.entered, spec_.experts_here());
    on.route_backward({.renormalise = spec_.experts->renormalised,
                       .logits = a.logits,
                       .dweights = a.weights,
                       .experts = a.chosen,
                       .balance = ranks.tally->balance,
                       .balance_scale = ranks.tally->slope});
    if (const Tensor slope = p.block.slope(router_); !slope.empty())
      on.linear_backward_weight(slope, a.logits, x, p.block.gradient.accumulate);
    on.linear_backward_input(x, a.logits, p.block.weight(router_));
    on.combine_rows({.out = x,
                     .accumulate = true,
                     .slots = ranks.experts->beyond(a.entered),
                     .places = a.places});
    return true;
  }

 private:
  static Backend& device(const MlpRanks& ranks) { return ranks.tensor.device(); }

  MlpActivations renewed(Arena& arena, const std::string& name) const {
    MlpActivations a;
    a.entered =
        arena.allocate(name + ".entered", Category::activations, dtype_, {slots_, spec_.hidden});
    a.activated =
        arena.allocate(name + ".activated", Category::activations, dtype_, {slots_, spec_.inner});
    return a;
  }
  Tensor up(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".up", Category::activations, dtype_, {slots_, spec_.up_width()});
  }
  Tensor returned(Arena& arena, const std::string& name) const {
    return arena.allocate(name + ".returned", Category::activations, dtype_,
                          {slots_, spec_.hidden});
  }

  /// Up to what the experts made; what the routers count is added to `tally`, if there is one.
  void run(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a, const Tensor& x,
           const RouterTally* tally) const {
    Backend& on = device(ranks);
    on.linear_forward(a.logits, x, p.block.weight(router_), {});
    on.route_forward({.renormalise = spec_.experts->renormalised,
                      .evenly = spec_.experts->evenly,
                      .weights = a.weights,
                      .experts = a.chosen,
                      .balance = tally != nullptr ? tally->balance : Tensor{},
                      .logits = a.logits});
    on.place_rows({.capacity = capacity_,
                   .owners = spec_.expert_share.ranks,
                   .multiple = multiple_,
                   .places = a.places,
                   .rows = a.sources,
                   .counts = a.counts,
                   .dropped = tally != nullptr ? tally->dropped : Tensor{},
                   .experts = a.chosen});
    if (capacity_ == 0) {
      a.counted->resize(static_cast<std::size_t>(spec_.experts->count));
      on.download(std::as_writable_bytes(std::span(*a.counted)), a.counts);
      if (tally != nullptr && tally->idle != nullptr) tally->idle->count(*a.counted);
    }
    dispatch(ranks, a, x);
    compute(ranks, p, a, true, true);
  }

  /// What the experts make of the rows in their slots, with the products that are asked for.
  void compute(const MlpRanks& ranks, const MlpParameters& p, const MlpActivations& a, bool with_up,
               bool with_down) const {
    if (with_up) linear_forward(ranks, p, Linear::up, a, a.up, a.entered);
    device(ranks).activation_forward(spec_.activation, a.activated, a.up);
    if (!with_down) return;
    linear_forward(ranks, p, Linear::down, a, ranks.experts->beyond(a.returned), a.activated);
    ranks.experts->receive(a.returned, spec_.experts_here());
  }

  /// Rows in their slots, those of this rank's experts.
  void dispatch(const MlpRanks& ranks, const MlpActivations& a, const Tensor& x) const {
    // As rows of a table: a slot of nobody becomes zeros.
    device(ranks).embedding_forward(ranks.experts->beyond(a.entered), a.sources, x, {},
                                    {.sequence = slots_, .turn = slots_});
    ranks.experts->receive(a.entered, spec_.experts_here());
  }

  /// Calls visit(rows) for this rank's experts: for all together where each has as many rows,
  /// unless they are to be `apart`, else for each.
  template <typename Visit>
  void for_experts(const MlpActivations& a, bool apart, Visit&& visit) const {
    const std::int64_t here = spec_.experts_here();
    if (capacity_ > 0 && !apart) return visit(ExpertRows{.count = slots_, .experts = here});
    std::int64_t first = 0;
    for (std::int64_t e = 0; e < here; ++e) {
      const std::int64_t count =
          capacity_ > 0 ? capacity_ * spec_.expert_share.ranks
                        : slots_given((*a.counted)[static_cast<std::size_t>(e)], multiple_);
      visit(ExpertRows{.expert = e, .first = first, .count = count, .counted = capacity_ == 0});
      first += count;
    }
  }
  /// What is made of a matrix before it is multiplied with has room for one.
  static bool apart(const MlpParameters& p) {
    return p.linears.quantized().any_experts() || p.linears.fp8().any();
  }

  int index_of(Linear l) const {
    return l == Linear::up ? parameters_.up_weight : parameters_.down_weight;
  }

  /// Of elements; what has 4 bits is there until the next one is asked for.
  Tensor weight(const MlpRanks& ranks, const MlpParameters& p, Linear l,
                const ExpertRows& r) const {
    const BlockQuantized& quantized = p.linears.quantized();
    if (quantized.any_experts()) return quantized.weight(device(ranks), l, r.expert);
    return of_experts(p.experts.weight(index_of(l)), r);
  }

  void linear_forward(const MlpRanks& ranks, const MlpParameters& p, Linear l,
                      const MlpActivations& a, const Tensor& y, const Tensor& x) const {
    for_experts(a, apart(p), [&](const ExpertRows& r) {
      if (r.count == 0) return;
      const Tensor w = weight(ranks, p, l, r);
      const Tensor in = x.row_range(r.first, r.count), out = y.row_range(r.first, r.count);
      if (const BlockFp8& fp8 = p.linears.fp8(); fp8.any())
        return Fp8Linear(ranks.tensor, fp8, l, r.expert, r.counted).forward(out, in, w, {});
      device(ranks).multiply_columns({.c = all_columns(out),
                                      .a = all_columns(in),
                                      .b = all_columns(w),
                                      .b_transposed = true,
                                      .bands = r.experts,
                                      .counted = r.counted});
    });
    for_experts(a, false, [&](const ExpertRows& r) {
      if (r.count == 0) return;
      p.linears.adapters().beside(l, r).forward(device(ranks), y.row_range(r.first, r.count),
                                                x.row_range(r.first, r.count));
    });
  }

  /// The gradients of what trains of the experts' matrices, then of x, in its place; returns
  /// whether that one is needed, and so made.
  bool linear_backward(const MlpRanks& ranks, const MlpParameters& p, Linear l,
                       const MlpActivations& a, const Tensor& dy, const Tensor& x) const {
    const bool needs_input = p.linears.adapters().needs_input(l);
    for_experts(a, false, [&](const ExpertRows& r) {
      const LinearAdapters beside = p.linears.adapters().beside(l, r);
      if (r.count == 0) return beside.backward_of_no_rows(device(ranks));
      beside.backward(device(ranks), dy.row_range(r.first, r.count), x.row_range(r.first, r.count));
    });
    for_experts(a, apart(p), [&](const ExpertRows& r) {
      const Tensor slope = of_experts(p.experts.slope(index_of(l)), r);
      if (r.count == 0) {
        if (!slope.empty() && !p.experts.gradient.accumulate) device(ranks).zero(slope);
      } else if (needs_input) {
        matrices_backward(ranks, p, l, r, slope, dy, x);
      }
    });
    if (!needs_input) return false;
    for_experts(a, false, [&](const ExpertRows& r) {
      if (r.count == 0) return;
      p.linears.adapters().beside(l, r).add_input_gradient(device(ranks),
                                                           x.row_range(r.first, r.count));
    });
    return true;
  }

  /// Their weights' gradients, if there is a slope, then those of their rows, in their place.
  void matrices_backward(const MlpRanks& ranks, const MlpParameters& p, Linear l,
                         const ExpertRows& r, const Tensor& slope, const Tensor& dy,
                         const Tensor& x) const {
    const Tensor w = weight(ranks, p, l, r);
    const Tensor rows = x.row_range(r.first, r.count), drows = dy.row_range(r.first, r.count);
    const bool add = p.experts.gradient.accumulate;
    if (const BlockFp8& fp8 = p.linears.fp8(); fp8.any())
      return Fp8Linear(ranks.tensor, fp8, l, r.expert, r.counted)
          .backward(slope, add, rows, drows, rows, w);
    if (!slope.empty())
      device(ranks).multiply_columns({.c = all_columns(slope),
                                      .a = all_columns(drows),
                                      .b = all_columns(rows),
                                      .a_transposed = true,
                                      .accumulate = add,
                                      .bands = r.experts,
                                      .counted = r.counted});
    device(ranks).multiply_columns({.c = all_columns(rows),
                                    .a = all_columns(drows),
                                    .b = all_columns(w),
                                    .bands = r.experts,
                                    .counted = r.counted});
  }

  DecoderSpec spec_;  ///< of this rank's part
  int router_;
  ExpertParameters parameters_;
  std::int64_t rows_, capacity_, multiple_, slots_;
  DType dtype_;
  ProductsAgain again_;  ///< under Keep::products
};

}  // namespace

std::unique_ptr<Mlp> make_expert_mlp(const DecoderSpec& spec, int router,
                                     const ExpertParameters& parameters, const ExpertSlots& slots,
                                     DType dtype, ProductsAgain again) {
  return std::make_unique<ExpertMlp>(spec, router, parameters, slots, dtype, again);
}

}  // namespace shardplan::validator
