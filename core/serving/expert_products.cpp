#include "serving/expert_products.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace shardplan {
namespace {

constexpr double kRowBytes = 2;  // of an element of operands and results

/// Of a pass with so many tokens, or rows of an expert.
ExpertTile tile_of(std::span<const ExpertTile> tiles, double has) {
  return *std::find_if(tiles.begin(), tiles.end() - 1, [&](const ExpertTile& tile) {
    return has <= static_cast<double>(tile.most);
  });
}

/// The largest of so many standard normal numbers, in the mean: the integral of x over d(Phi^n).
double largest_of(double numbers) {
  constexpr double kEnd = 8, kStep = 1.0 / 64;
  double mean = 0, before = 0;
  for (double x = -kEnd; x < kEnd; x += kStep) {
    const double up_to = std::pow(std::erfc(-(x + kStep) / std::sqrt(2.0)) / 2, numbers);
    mean += (x + kStep / 2) * (up_to - before);
    before = up_to;
  }
  return mean;
}

}  // namespace

/// Families name them alike: mlp.shared_expert, shared_experts, shared_mlp.
bool has_shared(const Segment& segment, const Model& model) {
  const auto& ops = segment.graph.ops();
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    return op.kind == OpKind::linear &&
           model.parameters[static_cast<std::size_t>(op.weight)].name.find("shared_") !=
               std::string::npos;
  });
}

/// Work of such a product is rows of a token times an expert's weights.
LayerExperts experts_of(const Segment& segment, const Model& model) {
  for (const Op& op : segment.graph.ops()) {
    if (op.kind != OpKind::grouped_linear) continue;
    const Parameter& weight = model.parameters[static_cast<std::size_t>(op.weight)];
    if (weight.shape.size() != 3) continue;
    const std::int64_t experts = weight.shape.front();
    const std::int64_t each = std::max<std::int64_t>(1, weight.numel / experts);
    const double work = static_cast<double>(op.work.per) / static_cast<double>(op.work.shards);
    return {static_cast<double>(experts), work / static_cast<double>(each),
            has_shared(segment, model)};
  }
  return {};
}

LayerExperts experts_of_slowest(const LayerExperts& all, double ranks, double tokens) {
  const double rows = tokens * all.of_token;
  const double others = std::max(0.0, all.experts - all.of_token) / std::max(1.0, all.experts - 1);
  const double more = rows > 0 ? largest_of(ranks) * std::sqrt((ranks - 1) * others / rows) : 0;
  LayerExperts own = all;
  own.experts /= ranks;
  own.of_token = std::min({all.of_token / ranks * (1 + more), all.of_token, own.experts});
  return own;
}

Kernel of_whole_experts(Kernel product, std::int64_t ranks, bool first) {
  product.batch /= ranks;
  (first ? product.n : product.k) *= ranks;
  return product;
}

double experts_hit(const ExpertProduct& product) {
  const double missed = std::max(0.0, 1 - product.of_token / product.experts);
  return product.experts * (1 - std::pow(missed, product.tokens));
}

double expert_tiles(const ExpertProduct& product, std::int64_t rows) {
  const double mean = product.tokens * product.of_token / product.experts;
  const auto tile = static_cast<double>(rows);
  constexpr double kMany = 600;  // rows of which the last tile is half full in the mean
  if (mean > kMany) return product.experts * (mean / tile + 0.5);
  // P(r) from r to r + 1, until what is left no longer counts.
  const double last = mean + 10 * std::sqrt(mean) + 20;
  double tiles = 0, chance = std::exp(-mean);
  for (double r = 1; r < last; ++r) {
    chance *= mean / r;
    tiles += chance * std::ceil(r / tile);
  }
  return product.experts * tiles;
}

namespace {

/// `operand`: bytes of an element of the rows.
double seconds_in(const ExpertProduct& product, const ExpertTile& tile, double operand,
                  double moves, double peak) {
  const double rows = product.tokens * product.of_token;
  const double read = (product.gathered ? product.tokens : rows) * product.k;
  const double moved = experts_hit(product) * product.n * product.k * product.bytes +
                       kRowBytes * rows * product.n + operand * read;
  const double padded = expert_tiles(product, tile.rows) * static_cast<double>(tile.rows);
  const double moving = moved / moves;
  const double computing = 2 * padded * product.n * product.k / (tile.rate * peak);
  return std::sqrt(moving * moving + computing * computing);
}

}  // namespace

double expert_seconds(const ExpertProduct& product, const ExpertKernel& kernel, double peak,
                      double memory) {
  const bool narrow = product.bytes < kRowBytes;
  const ExpertTile tile =
      narrow ? tile_of(kernel.narrow, product.tokens) : tile_of(kernel.wide, product.tokens);
  return kernel.seconds + seconds_in(product, tile, std::min(kRowBytes, product.bytes),
                                     kernel.memory_share * memory, peak);
}

double widened_expert_seconds(const ExpertProduct& product, const WidenedExperts& kernel,
                              double peak, double memory) {
  const double rows = product.tokens * product.of_token / product.experts;
  return kernel.seconds + seconds_in(product, tile_of(kernel.tiles, rows), kRowBytes,
                                     kernel.memory_share * memory, peak);
}

}  // namespace shardplan
