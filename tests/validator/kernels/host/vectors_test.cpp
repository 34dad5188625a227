// The vector loops of every generation of CPUs that this machine runs, beside the host back end's
// plain AdamW: the same bits.
#include "kernels/host/vectors/vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "device/random.h"
#include "kernels/host/adamw_factors.h"
#include "kernels/host/crew/crew.h"
#include "kernels/host/crew/host_crew.h"
#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

constexpr std::int64_t kCount = 3 * 1024 + 17;  // no multiple of any vector

/// A tensor with values of its own, from the largest to the smallest that gradients take.
class Values {
 public:
  Values(DType dtype, std::uint64_t stream, bool positive = false, int exponent = 0)
      : bytes_(static_cast<std::size_t>(kCount * size_of(dtype))),
        tensor_{reinterpret_cast<std::uintptr_t>(bytes_.data()), dtype, Shape{kCount}} {
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const std::uint64_t bits = random_bits(7, stream, static_cast<std::uint64_t>(i));
        const float magnitude = std::ldexp(unit_interval(static_cast<std::uint32_t>(bits)),
                                           static_cast<int>(bits >> 32U & 31U) - 24 + exponent);
        const bool negative = !positive && (bits >> 63U) != 0;
        tensor_.as<T>()[i] = static_cast<T>(negative ? -magnitude : magnitude);
      }
    });
  }
  const Tensor& tensor() const { return tensor_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  Tensor tensor_;
};

struct Case {
  DType dtype, states;
  bool master;
};
const Case kCases[] = {{DType::f32, DType::f32, false},   {DType::bf16, DType::f32, true},
                       {DType::bf16, DType::bf16, false}, {DType::bf16, DType::f32, false},
                       {DType::f16, DType::f32, true},    {DType::f32, DType::bf16, false}};

/// What moments and parameters are: results are rounded at random another way where all of a block
/// are small, and where one of them is no number.
enum class Kind { large, small, infinite };
constexpr const char* kKindNames[] = {"large", "small", "infinite"};

/// Operands of one update, and three steps of it by `run`.
struct Updated {
  Values parameter, gradient, first, second, master;
  float norm = 2.5F;

  template <typename Run>
  Updated(const Case& c, Kind kind, Run&& run)
      : parameter(c.dtype, 1, false, kind == Kind::small ? -7 : 0),
        gradient(c.dtype, 2, false, kind == Kind::small ? -7 : 0),
        first(c.states, 3, false, kind == Kind::small ? -7 : 0),
        second(c.states, 4, true, kind == Kind::small ? -7 : 0),
        master(DType::f32, 5, false, kind == Kind::small ? -7 : 0) {
    if (kind == Kind::infinite)
      for (const Values* moment : {&first, &second})
        dispatch(c.states, [&](auto zero) {
          using S = decltype(zero);
          S* values = moment->tensor().as<S>();
          const int offset = moment == &second;
          for (const std::int64_t i : {3, 700, 3000}) {
            values[i + offset] = std::numeric_limits<S>::infinity();
            // All bits but the sign: more bits would carry into it.
            auto* number = reinterpret_cast<std::byte*>(&values[i + offset + 2]);
            std::fill_n(number, sizeof(S), std::byte{0xFF});
            number[sizeof(S) - 1] = std::byte{0x7F};
          }
        });
    AdamW o{.parameter = parameter.tensor(),
            .master = c.master ? master.tensor() : Tensor{},
            .gradient = gradient.tensor(),
            .first_moment = first.tensor(),
            .second_moment = second.tensor(),
            .clipping = {{reinterpret_cast<std::uintptr_t>(&norm), DType::f32, Shape{1}}, 0.5F, 1},
            .learning_rate = 1e-2F,
            .weight_decay = 0.1F,
            .seed = 11,
            .first_element = 1'000'003};
    for (o.step = 1; o.step <= 3; ++o.step) run(o);
  }
  bool operator==(const Updated& other) const {
    return parameter.bytes() == other.parameter.bytes() && first.bytes() == other.first.bytes() &&
           second.bytes() == other.second.bytes() && master.bytes() == other.master.bytes();
  }
};

TEST(Vectors, update_as_the_plain_loop_does_to_the_bit) {
  for (const Vectors* vectors : vectors_of_this_machine())
    for (const Kind kind : {Kind::large, Kind::small, Kind::infinite})
      for (const Case& c : kCases) {
        const Updated plain(c, kind, [](const AdamW& o) { adamw(o); });
        const Updated fast(c, kind, [&](const AdamW& o) {
          // In two ranges: an element's random bits are those of its place in the model.
          constexpr std::int64_t kFirst = 1000;
          vectors->adamw(adamw_range(o, *adamw_factors(o), 0, kFirst));
          vectors->adamw(adamw_range(o, *adamw_factors(o), kFirst, kCount - kFirst));
        });
        EXPECT_TRUE(plain == fast)
            << vectors->name << ", " << kKindNames[static_cast<int>(kind)] << ", "
            << name_of(c.dtype) << ", " << name_of(c.states) << (c.master ? ", master" : "");
      }
}

TEST(Vectors, add_as_the_plain_loop_does_to_the_bit) {
  for (const Vectors* vectors : vectors_of_this_machine())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const Values plain(dtype, 1), fast(dtype, 1), more(dtype, 2);
      add(plain.tensor(), more.tensor());
      vectors->add(fast.tensor().data(), more.tensor().data(), dtype, kCount);
      EXPECT_EQ(plain.bytes(), fast.bytes()) << vectors->name << ", " << name_of(dtype);
    }
}

TEST(Vectors, sum_squares_to_the_same_bits) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Values x(dtype, 1);
    double plain = 0;
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const double value = static_cast<double>(static_cast<float>(x.tensor().as<T>()[i]));
        plain += value * value;
      }
    });
    const double scalar = sum_of_squares(kScalarVectors, x.tensor());
    EXPECT_NEAR(scalar / plain, 1, 1e-14);
    for (const Vectors* vectors : vectors_of_this_machine())
      EXPECT_EQ(sum_of_squares(*vectors, x.tensor()), scalar) << vectors->name;
  }
}

TEST(Vectors, keep_what_is_no_number) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const Vectors* vectors : vectors_of_this_machine()) {
    bf16 sum[3] = {static_cast<bf16>(inf), static_cast<bf16>(inf), static_cast<bf16>(1)};
    const bf16 more[3] = {static_cast<bf16>(1), static_cast<bf16>(-inf), static_cast<bf16>(nan)};
    vectors->add(sum, more, DType::bf16, 3);
    EXPECT_EQ(static_cast<float>(sum[0]), inf) << vectors->name;
    EXPECT_TRUE(std::isnan(static_cast<float>(sum[1]))) << vectors->name;
    EXPECT_TRUE(std::isnan(static_cast<float>(sum[2]))) << vectors->name;
  }
}

TEST(Crew, covers_every_element_once_whatever_its_size) {
  for (const int threads : {1, 2, 3, 5}) {
    Crew crew({std::vector<int>(static_cast<std::size_t>(threads), 0), false});
    EXPECT_EQ(crew.size(), threads);
    for (const std::int64_t count : {0, 1, 1023, 1024, 1025, 5 * 1024, 9999})
      for (int again = 0; again < 20; ++again) {
        std::vector<int> seen(static_cast<std::size_t>(count));
        crew.split(count, [&](std::int64_t first, std::int64_t n) {
          for (std::int64_t i = first; i < first + n; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(count), 1));
      }
  }
}

TEST(HostCrew, sums_the_same_bits_with_any_number_of_threads) {
  std::vector<float> values(static_cast<std::size_t>(3 * kSumChunk + 77));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = unit_interval(static_cast<std::uint32_t>(random_bits(1, 2, i)));
  const Tensor x{reinterpret_cast<std::uintptr_t>(values.data()), DType::f32,
                 Shape{static_cast<std::int64_t>(values.size())}};
  const double all = make_host_crew({0, 1})->squared_norm(x);
  EXPECT_EQ(make_host_crew({3, 64})->squared_norm(x), all);
  EXPECT_EQ(sum_of_squares(kScalarVectors, x), all);
}

TEST(Cpus, are_divided_among_the_ranks_of_a_machine) {
  const std::size_t all = cpus_of({0, 1}).numbers.size();
  EXPECT_GE(all, 1U);
  for (int rank = 0; rank < 3; ++rank) EXPECT_GE(cpus_of({rank, 3}).numbers.size(), 1U);
  EXPECT_LE(cpus_of({0, 2}).numbers.size(), std::max<std::size_t>(1, all));
}

}  // namespace
}  // namespace shardplan::validator::host
