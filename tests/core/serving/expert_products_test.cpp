// Tiles of an engine's kernel for experts: how many experts and tiles a pass fills, and what a
// product takes.
#include "serving/expert_products.h"

#include <gtest/gtest.h>

namespace shardplan::expert_products_test {
namespace {

ExpertProduct product(double experts, double of_token, double tokens) {
  ExpertProduct p{{experts, of_token}};
  p.tokens = tokens;
  p.n = 1024;
  p.k = 2048;
  return p;
}

/// Eight of 128 experts take a token: of two tokens 8 + 8 (1 - 8/128).
TEST(ExpertProducts, ATokenGoesToDifferentExperts) {
  EXPECT_NEAR(experts_hit(product(128, 8, 1)), 8, 1e-9);
  EXPECT_NEAR(experts_hit(product(128, 8, 2)), 15.5, 1e-9);
  EXPECT_NEAR(experts_hit(product(128, 8, 4096)), 128, 1e-6);
  EXPECT_NEAR(experts_hit(product(1, 1, 7)), 1, 1e-12);
}

/// A tile of one row is a row; of tiles larger than any expert's rows each expert that has rows has
/// one: E (1 - exp(-mean)).
TEST(ExpertProducts, TilesHoldTheRowsOfAnExpert) {
  EXPECT_NEAR(expert_tiles(product(8, 2, 40), 1), 80, 1e-6);
  EXPECT_NEAR(expert_tiles(product(8, 2, 8), 1 << 20), 8 * (1 - 0.1353352832), 1e-6);
  EXPECT_NEAR(expert_tiles(product(8, 2, 4096), 128), 8 * 8.5, 1e-9);
}

/// Where sums of chances end and the rule for many rows begins, tiles do not jump.
TEST(ExpertProducts, ManyRowsGoOnAsFewDo) {
  const double below = expert_tiles(product(1, 1, 599.9), 64);
  const double above = expert_tiles(product(1, 1, 600.1), 64);
  EXPECT_NEAR(below, above, 0.05);
}

/// One token of one expert: weights, and a row of each side, at the share of the memory's rate.
TEST(ExpertProducts, AFewRowsTakeAsLongAsTheirWeights) {
  ExpertKernel kernel = kVllmExperts;
  kernel.seconds = 0;
  const double seconds = expert_seconds(product(1, 1, 1), kernel, 1e30, 1e12);
  EXPECT_NEAR(seconds, 2.0 * (1024 * 2048 + 1024 + 2048) / 0.9e12, 1e-15);
}

/// 8,192 tokens of one expert, in tiles of 128 rows: as many operations, and half a tile more.
TEST(ExpertProducts, ManyRowsTakeAsLongAsTheirTiles) {
  ExpertKernel kernel = kVllmExperts;
  kernel.seconds = 0;
  const double seconds = expert_seconds(product(1, 1, 8192), kernel, 1e15, 1e30);
  EXPECT_NEAR(seconds, 2.0 * (8192 + 64) * 1024 * 2048 / (0.62 * 1e15), 1e-12);
}

/// A row of weights in 4 bits with a scale of a byte for 32, rows in 16 bits.
TEST(ExpertProducts, WeightsOfFewBitsAreReadInTheirBits) {
  WidenedExperts kernel = kMarlinExperts;
  kernel.seconds = 0;
  ExpertProduct p = product(1, 1, 1);
  p.bytes = 17.0 / 32;
  EXPECT_NEAR(widened_expert_seconds(p, kernel, 1e30, 1e12),
              (1024 * 2048 * 17.0 / 32 + 2 * (1024 + 2048)) / 0.9e12, 1e-15);
}

/// Eight rows of an expert in the mean fill tiles of 16, seven tiles of 8.
TEST(ExpertProducts, TilesOfWidenedWeightsFollowTheRowsOfAnExpert) {
  WidenedExperts kernel = kMarlinExperts;
  kernel.seconds = 0;
  const auto seconds = [&](double tokens) {
    return widened_expert_seconds(product(128, 4, tokens), kernel, 1e15, 1e30);
  };
  const auto of_tiles = [&](double tokens, std::int64_t rows) {
    return 2 * expert_tiles(product(128, 4, tokens), rows) * static_cast<double>(rows) * 1024 *
           2048 / (0.25 * 1e15);
  };
  EXPECT_NEAR(seconds(256), of_tiles(256, 16), 1e-12);
  EXPECT_NEAR(seconds(224), of_tiles(224, 8), 1e-12);
}

/// Operands that lie among the tokens' own rows are read once, not once for each expert.
TEST(ExpertProducts, GatheredRowsAreReadOnce) {
  ExpertProduct all = product(8, 4, 512), gathered = all;
  gathered.gathered = true;
  const double difference = expert_seconds(all, kVllmExperts, 1e30, 1e12) -
                            expert_seconds(gathered, kVllmExperts, 1e30, 1e12);
  EXPECT_NEAR(difference, 2.0 * 512 * 3 * 2048 / 0.9e12, 1e-12);
}

}  // namespace
}  // namespace shardplan::expert_products_test
