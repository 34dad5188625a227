// The operations of layers of experts, by hand. Their gradients are the engine's tests'.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/row_classes.h"
#include "kernels/host/kernels.h"

namespace shardplan::validator {
namespace {

template <typename T>
Tensor view(std::vector<T>& values, DType dtype, Shape shape) {
  return {reinterpret_cast<std::uintptr_t>(values.data()), dtype, shape};
}

TEST(Routing, takes_the_largest_and_the_first_of_equal_ones) {
  std::vector<float> logits{0, std::log(2.0F), 0, 0, std::log(5.0F), 0, std::log(3.0F), 0};
  std::vector<float> weights(4), balance(8, 1);
  std::vector<std::int32_t> experts(4);
  host::route_forward({.renormalise = false,
                       .weights = view(weights, DType::f32, {2, 2}),
                       .experts = view(experts, DType::i32, {2, 2}),
                       .balance = view(balance, DType::f32, {2, 4}),
                       .logits = view(logits, DType::f32, {2, 4})});
  EXPECT_EQ(experts, (std::vector<std::int32_t>{1, 0, 0, 2}));
  EXPECT_FLOAT_EQ(weights[0], 2.0F / 5);
  EXPECT_FLOAT_EQ(weights[1], 1.0F / 5);
  EXPECT_FLOAT_EQ(weights[2], 5.0F / 10);
  EXPECT_FLOAT_EQ(weights[3], 3.0F / 10);
  // Added to what was there: two assignments of expert 0, one each of 1 and 2, none of 3.
  EXPECT_EQ(std::vector<float>(balance.begin(), balance.begin() + 4),
            (std::vector<float>{3, 2, 2, 1}));
  EXPECT_FLOAT_EQ(balance[4], 1 + 0.2F + 0.5F);
  EXPECT_FLOAT_EQ(balance[7], 1 + 0.2F + 0.1F);

  host::route_forward({.renormalise = true,
                       .weights = view(weights, DType::f32, {2, 2}),
                       .experts = view(experts, DType::i32, {2, 2}),
                       .logits = view(logits, DType::f32, {2, 4})});
  EXPECT_FLOAT_EQ(weights[0], 2.0F / 3);
  EXPECT_FLOAT_EQ(weights[3], 3.0F / 8);
  float loss = 1;
  std::vector<float> one{loss};
  host::balance_loss(view(one, DType::f32, {1}), view(balance, DType::f32, {2, 4}), 0.5F);
  EXPECT_FLOAT_EQ(one[0], 1 + 0.5F * (3 * 1.7F + 2 * (1 + 0.4F + 0.1F) + 2 * 1.5F + 1.3F));
}

TEST(Routing, goes_to_all_experts_alike_where_that_is_asked_for) {
  std::vector<float> logits{0, std::log(2.0F), 0, 0, std::log(5.0F), 0, std::log(3.0F), 0, 0, 0, 0,
                            0};
  std::vector<float> weights(9), balance(8);
  std::vector<std::int32_t> experts(9);
  host::route_forward({.renormalise = false,
                       .evenly = true,
                       .weights = view(weights, DType::f32, {3, 3}),
                       .experts = view(experts, DType::i32, {3, 3}),
                       .balance = view(balance, DType::f32, {2, 4}),
                       .logits = view(logits, DType::f32, {3, 4})});
  EXPECT_EQ(experts, (std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3, 0}));
  EXPECT_FLOAT_EQ(weights[1], 2.0F / 5) << "still what the router says of it";
  EXPECT_FLOAT_EQ(weights[4], 5.0F / 10);
  EXPECT_EQ(std::vector<float>(balance.begin(), balance.begin() + 4),
            (std::vector<float>{3, 2, 2, 2}));
}

TEST(RowClasses, are_few_and_end_at_powers_of_four) {
  for (const auto& [rows, most] : {std::pair{1, 128},
                                   {128, 128},
                                   {129, 512},
                                   {512, 512},
                                   {513, 2048},
                                   {8192, 8192},
                                   {8193, 32768}})
    EXPECT_EQ(class_of_rows(rows), most) << rows;
}

struct Placed {
  std::vector<std::int32_t> places, rows, counts;
  float dropped = 0;
};

/// Three rows of two assignments each, to four experts.
Placed place(std::int64_t capacity, std::int64_t owners, std::int64_t slots) {
  std::vector<std::int32_t> experts{2, 0, 0, 3, 2, 0};
  Placed p{std::vector<std::int32_t>(6), std::vector<std::int32_t>(static_cast<std::size_t>(slots)),
           std::vector<std::int32_t>(4)};
  std::vector<float> dropped{0};
  host::place_rows({.capacity = capacity,
                    .owners = owners,
                    .places = view(p.places, DType::i32, {3, 2}),
                    .rows = view(p.rows, DType::i32, {slots}),
                    .counts = view(p.counts, DType::i32, {4}),
                    .dropped = view(dropped, DType::f32, {1}),
                    .experts = view(experts, DType::i32, {3, 2})});
  p.dropped = dropped[0];
  return p;
}

TEST(Slots, are_as_many_as_each_expert_is_given) {
  const Placed p = place(0, 1, 6);
  EXPECT_EQ(p.counts, (std::vector<std::int32_t>{3, 0, 2, 1}));
  EXPECT_EQ(p.places, (std::vector<std::int32_t>{3, 0, 1, 5, 4, 2}));
  EXPECT_EQ(p.rows, (std::vector<std::int32_t>{0, 1, 2, 0, 2, 1}));
  EXPECT_EQ(p.dropped, 0);
}

TEST(Slots, of_a_capacity_drop_what_comes_last) {
  const Placed p = place(2, 1, 8);
  EXPECT_EQ(p.places, (std::vector<std::int32_t>{4, 0, 1, 6, 5, -1}));
  EXPECT_EQ(p.rows, (std::vector<std::int32_t>{0, 1, -1, -1, 0, 2, 1, -1}));
  EXPECT_EQ(p.counts[0], 3);
  EXPECT_EQ(p.dropped, 1);
}

/// Experts 0 and 1 are one rank's, 2 and 3 the other's: the first of each come first.
TEST(Slots, next_to_each_other_go_to_different_owners) {
  const Placed p = place(2, 2, 8);
  EXPECT_EQ(p.places, (std::vector<std::int32_t>{2, 0, 1, 6, 3, -1}));
  EXPECT_EQ(p.rows, (std::vector<std::int32_t>{0, 1, 0, 2, -1, -1, 1, -1}));
}

TEST(Combining, weighs_rows_and_gives_their_gradients_back) {
  std::vector<double> slots{1, 2, 3, 4, 5, 6}, weights{0.5, 2, 3, 4}, out(4, 7), dout{1, 10, 2, 20};
  std::vector<std::int32_t> places{2, 0, 1, -1};
  const Tensor s = view(slots, DType::f64, {3, 2}), w = view(weights, DType::f64, {2, 2});
  const Tensor p = view(places, DType::i32, {2, 2}), o = view(out, DType::f64, {2, 2});
  host::combine_rows({.out = o, .slots = s, .places = p, .weights = w});
  EXPECT_EQ(out, (std::vector<double>{0.5 * 5 + 2 * 1, 0.5 * 6 + 2 * 2, 3 * 3, 3 * 4}));
  host::combine_rows({.out = o, .accumulate = true, .slots = s, .places = p});
  EXPECT_EQ(out, (std::vector<double>{4.5 + 6, 7 + 8, 9 + 3, 12 + 4}));
  host::combine_backward(
      {.slots = s, .weights = w, .places = p, .dout = view(dout, DType::f64, {2, 2})});
  EXPECT_EQ(weights, (std::vector<double>{5 + 60, 1 + 20, 6 + 80, 0}));
  EXPECT_EQ(slots, (std::vector<double>{2, 20, 6, 60, 0.5, 5}));
}

}  // namespace
}  // namespace shardplan::validator
