// Routers, the slots of experts, and the sums of what came out of them.
#include <fmt/core.h>

#include "kernel_check/checks.h"

namespace shardplan::validator {
namespace {

struct RouterCase {
  std::int64_t rows, experts, per_token;
  bool renormalise;
  bool evenly = false;
};

std::string shape_of(const RouterCase& c) {
  return fmt::format("{}, {} of {}{}{}", c.rows, c.per_token, c.experts,
                     c.renormalise ? ", renormalised" : "", c.evenly ? ", evenly" : "");
}

Pair indices(Laboratory& lab, std::int64_t count, std::int32_t below) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values) value = below > 0 ? lab.random_below(below) : -7;
  return lab.integers(values);
}

/// Different experts of each row, at random.
Pair choices(Laboratory& lab, const RouterCase& c) {
  std::vector<std::int32_t> values;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const std::int32_t first = lab.random_below(static_cast<std::int32_t>(c.experts));
    for (std::int64_t j = 0; j < c.per_token; ++j)
      values.push_back(static_cast<std::int32_t>((first + 3 * j * j + j) % c.experts));
  }
  return lab.integers(values);
}

void check_routing(Laboratory& lab, DType dtype, const RouterCase& c) {
  const Shape chosen{c.rows, c.per_token};
  lab.begin("routing", shape_of(c), dtype);
  const Pair logits = lab.normal({c.rows, c.experts}, 2.0);
  const Pair weights = lab.statistic(chosen);
  const Pair experts = indices(lab, chosen.numel(), 0);
  const Pair balance = lab.typed({2, c.experts}, DType::f32, 1.0);
  const Pair loss = lab.scalar(3.0);
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.route_forward({.renormalise = c.renormalise,
                               .evenly = c.evenly,
                               .weights = of(weights),
                               .experts = of(experts).view(chosen),
                               .balance = of(balance),
                               .logits = of(logits)});
        backend.balance_loss(of(loss), of(balance), 1e-3F);
      },
      {{"weights", weights}, {"experts", experts}, {"balance", balance}, {"loss", loss}});

  lab.begin("routing, backward", shape_of(c), dtype);
  const Pair dlogits = lab.normal({c.rows, c.experts}, 2.0);
  const Pair dweights = lab.typed(chosen, DType::f32, 1.0);
  const Pair taken = choices(lab, c);
  const Pair assigned = lab.typed({2, c.experts}, DType::f32, 1.0);
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.route_backward({.renormalise = c.renormalise,
                                .logits = of(dlogits),
                                .dweights = of(dweights),
                                .experts = of(taken).view(chosen),
                                .balance = of(assigned),
                                .balance_scale = 0.25F});
      },
      {{"dlogits", dlogits}});
}

/// capacity 0: as many slots as there are assignments, at multiples.
void check_slots(Laboratory& lab, DType dtype, const RouterCase& c, std::int64_t capacity,
                 std::int64_t owners, std::int64_t width, std::int64_t multiple = 1) {
  const Shape chosen{c.rows, c.per_token};
  const std::int64_t slots =
      capacity > 0 ? c.experts * capacity : chosen.numel() + c.experts * (multiple - 1);
  lab.begin("slots",
            fmt::format("{}, room {}, {} owners, multiples of {}", shape_of(c), capacity, owners,
                        multiple),
            dtype);
  const Pair experts = choices(lab, c);
  const Pair places = indices(lab, chosen.numel(), 0);
  const Pair rows = indices(lab, slots, 0);
  const Pair counts = indices(lab, c.experts, 0);
  const Pair dropped = lab.scalar(2.0);
  const Pair weights = lab.typed(chosen, DType::f32, 1.0);
  const Pair values = lab.normal({slots, width});
  const Pair out = lab.output({c.rows, width});
  const Pair sum = lab.normal({c.rows, width});
  const Pair dout = lab.normal({c.rows, width});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const Tensor where = of(places).view(chosen);
        backend.place_rows({.capacity = capacity,
                            .owners = owners,
                            .multiple = multiple,
                            .places = where,
                            .rows = of(rows),
                            .counts = of(counts),
                            .dropped = of(dropped),
                            .experts = of(experts).view(chosen)});
        backend.combine_rows(
            {.out = of(out), .slots = of(values), .places = where, .weights = of(weights)});
        backend.combine_rows(
            {.out = of(sum), .accumulate = true, .slots = of(values), .places = where});
        backend.combine_backward(
            {.slots = of(values), .weights = of(weights), .places = where, .dout = of(dout)});
      },
      {{"places", places},
       {"rows", rows},
       {"counts", counts},
       {"dropped", dropped},
       {"sums", out},
       {"sums +=", sum},
       {"dslots", values},
       {"dweights", weights}});
}

}  // namespace

void check_experts(Laboratory& lab, DType dtype) {
  for (const RouterCase& c : {RouterCase{4096, 8, 2, true}, RouterCase{1000, 128, 8, false},
                              RouterCase{77, 60, 4, true}, RouterCase{300, 256, 6, false},
                              RouterCase{33, 1000, 3, true}, RouterCase{1001, 60, 8, true, true}})
    check_routing(lab, dtype, c);
  check_slots(lab, dtype, {4096, 8, 2, true}, 0, 1, 512);
  check_slots(lab, dtype, {1000, 128, 8, true}, 64, 4, 100);
  check_slots(lab, dtype, {1000, 128, 8, true}, 0, 1, 64, 16);
  check_slots(lab, dtype, {2048, 8, 2, true}, 2048, 2, 64);
  check_slots(lab, dtype, {77, 60, 4, true}, 3, 1, 33);
}

}  // namespace shardplan::validator
