// The layouts and schedules of ZeRO against brute force on small random models.
#include <gtest/gtest.h>

#include <random>

#include "base/units.h"
#include "frameworks/deepspeed/buckets.h"
#include "frameworks/deepspeed/gather.h"
#include "frameworks/deepspeed/layout.h"
#include "simulator/caching_allocator.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }

 private:
  std::mt19937 engine_;
};

/// Groups that repeat one to five times, with tensors of 1 to 40 elements, some of them frozen.
Model random_tensors(Random& random) {
  ModelBuilder m({});
  const std::int64_t groups = random.between(1, 4);
  for (std::int64_t g = 0; g < groups; ++g) {
    m.begin_repeat("group" + std::to_string(g), random.between(1, 5));
    const std::int64_t tensors = random.between(1, 4);
    for (std::int64_t t = 0; t < tensors; ++t)
      m.tensor("m" + std::to_string(t) + ".weight", {random.between(1, 40)}, ParameterKind::linear);
    m.end_repeat();
  }
  Model model = m.build();
  for (Parameter& p : model.parameters) p.trainable = random.between(0, 4) > 0;
  model.parameters.front().trainable = true;
  return model;
}

struct Tensor {
  ParameterId id = kNone;
  std::int64_t layer = 0, begin = 0, numel = 0;
};

/// Every trainable tensor at its place in the flat group.
std::vector<Tensor> flat(const Model& model) {
  std::vector<Tensor> all;
  std::int64_t at = 0;
  for (const ParameterGroup& g : model.groups) {
    for (std::int64_t layer = 0; layer < g.repeat; ++layer) {
      for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
        const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
        if (!p.trainable) continue;
        all.push_back({i, layer, at, p.numel});
        at += p.numel;
      }
    }
  }
  return all;
}

TEST(FlatLayout, IsBruteForceOnEveryRank) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const Model model = random_tensors(random);
    const std::vector<Tensor> tensors = flat(model);
    const std::int64_t total = tensors.back().begin + tensors.back().numel;
    for (const std::int64_t ranks : {1, 2, 3, 8, 31}) {
      const FlatLayout layout(model, ranks);
      std::int64_t padded = total;
      while (padded % (2 * ranks) != 0) ++padded;
      ASSERT_EQ(layout.padded(), padded) << seed;
      ASSERT_EQ(layout.partition(), padded / ranks) << seed;
      std::int64_t most = -1, best = -1;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const std::int64_t begin = rank * layout.partition(), end = begin + layout.partition();
        std::int64_t touched = 0, fragment = 0;
        for (const Tensor& t : tensors) {
          const std::int64_t piece = std::min(end, t.begin + t.numel) - std::max(begin, t.begin);
          if (piece > 0) touched += t.numel;
          fragment = std::max(fragment, piece);
          ASSERT_EQ(layout.owned_layers(t.id, rank).contains(t.layer), piece > 0)
              << seed << " rank " << rank;
        }
        ASSERT_EQ(layout.touched(rank), touched) << seed << " rank " << rank << " of " << ranks;
        ASSERT_EQ(layout.largest_fragment(rank), fragment)
            << seed << " rank " << rank << " of " << ranks;
        if (touched > most) {
          most = touched;
          best = rank;
        }
      }
      ASSERT_EQ(layout.rank_with_most_touched(), best) << seed;
    }
  }
}

TEST(ShardLayout, PadsEveryTensorAlone) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Model model = random_tensors(random);
    for (const std::int64_t ranks : {1, 2, 7, 64}) {
      std::int64_t trainable = 0, frozen = 0, largest = 0;
      model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
        std::int64_t shard = 0;
        while (shard * ranks < p.numel) ++shard;
        (p.trainable ? trainable : frozen) += shard * repeat;
        if (p.trainable) largest = std::max(largest, shard);
      });
      const ShardLayout layout = shard_layout(model, ranks);
      ASSERT_EQ(layout.trainable, trainable) << seed;
      ASSERT_EQ(layout.frozen, frozen) << seed;
      ASSERT_EQ(layout.largest, largest) << seed;
    }
  }
}

Model small_llama(std::int64_t layers, bool tied) {
  return model_of(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_attention_heads": 4, "vocab_size": 100, "tie_word_embeddings": )" +
                  std::string(tied ? "true" : "false") + R"(, "num_hidden_layers": )" +
                  std::to_string(layers) + "}");
}

struct Arrival {
  std::size_t segment = 0;
  std::int64_t iteration = 0;
  ParameterId id = kNone;
  std::int64_t numel = 0;
};

/// The gradients that reach the reducer, in order: a tied tensor's only once it is whole.
std::vector<Arrival> arrivals(const Model& model, const ModelRun& run) {
  std::vector<Arrival> all;
  for (std::size_t s = run.segments.size(); s-- > 0;)
    for (std::int64_t i = 0; i < run.segments[s].segment->repeat; ++i)
      for (const TapeEvent& e : run.segments[s].backward.backward)
        if (e.kind == TapeEvent::Kind::gradient)
          all.push_back({s, i, e.id, model.parameters[static_cast<std::size_t>(e.id)].numel});
  std::vector<Arrival> whole;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool again = false;
    for (std::size_t k = i + 1; k < all.size(); ++k)
      again = again || (all[k].id == all[i].id && all[k].segment != all[i].segment);
    if (!again) whole.push_back(all[i]);
  }
  return whole;
}

/// An embedding's gradient arrives last, in memory of its own, and is added to the head's in a
/// third tensor, which is what a hook gets: as three runs of Llama 3.2 1B under ZeRO-2 had it.
TEST(SummedApart, IsATiedTable) {
  const Plan plan = zero_plan(2, "bf16-master", 2);
  const Model tied = model_of(R"({"model_type": "llama", "hidden_size": 256, "vocab_size": 8192,
      "intermediate_size": 704, "num_hidden_layers": 2, "num_attention_heads": 8,
      "tie_word_embeddings": true})",
                              build_options(plan));
  const std::vector<bool> apart = summed_apart(tied, run_segments(tied, plan));
  ASSERT_EQ(tied.parameters.front().name, "model.embed_tokens.weight");
  EXPECT_TRUE(apart.front());
}

TEST(BucketSchedule, IsBruteForce) {
  for (const bool tied : {false, true}) {
    const Model model = small_llama(6, tied);
    const Plan plan = zero_plan(2, "bf16-master", 4);
    const ModelRun run = run_segments(model, plan);
    const std::vector<Arrival> order = arrivals(model, run);
    std::int64_t sum = 0;
    for (const Arrival& a : order) sum += a.numel;
    ASSERT_EQ(sum, model.trainable_count());
    for (const std::int64_t capacity :
         {1, 100, 5000, 9216, 20'000, 50'000, 70'000, 100'000, 130'000, 10'000'000}) {
      for (std::int64_t rank = 0; rank < 4; ++rank) {
        const FlatLayout layout(model, 4);
        const BucketSchedule schedule = schedule_buckets(
            model, run, capacity, [&](ParameterId id) { return layout.owned_layers(id, rank); },
            false, [&](std::int64_t from, std::int64_t end) { return layout.divides(from, end); });
        // Fill buckets one gradient at a time.
        std::vector<std::vector<Arrival>> buckets{{}};
        std::vector<const Arrival*> flushed_before;  // the gradient that found the bucket full
        std::int64_t filled = 0;
        for (const Arrival& a : order) {
          if (filled > 0 && filled + a.numel > capacity) {
            flushed_before.push_back(&a);
            buckets.emplace_back();
            filled = 0;
          }
          buckets.back().push_back(a);
          filled += a.numel;
        }
        ASSERT_EQ(schedule.flushes, static_cast<std::int64_t>(buckets.size()));
        ASSERT_EQ(schedule.first_flush.has_value(), !flushed_before.empty());
        std::int64_t first = 0;
        for (const Arrival& a : buckets.front()) first += a.numel;
        EXPECT_EQ(schedule.first.elements, first);
        if (!flushed_before.empty()) {
          EXPECT_EQ(schedule.first_flush->segment, flushed_before[0]->segment);
          EXPECT_EQ(schedule.first_flush->iteration, flushed_before[0]->iteration);
          EXPECT_EQ(schedule.first_flush->before, flushed_before[0]->id);
        }
        // The first bucket that is cut where a partition ends, the partitions laid from the front.
        std::int64_t before = 0, divided = 0, last_divided = 0;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
          std::int64_t size = 0;
          for (const Arrival& a : buckets[i]) size += a.numel;
          bool cut = false;
          for (std::int64_t end = layout.partition(); end < sum; end += layout.partition())
            cut = cut || (sum - before - size < end && end < sum - before);
          before += size;
          if (!cut) continue;
          if (i + 1 == buckets.size()) {
            last_divided = size;
          } else if (divided == 0) {
            divided = size;
            ASSERT_TRUE(schedule.first_divided.has_value());
            EXPECT_EQ(schedule.first_divided->before, flushed_before[i]->id);
            EXPECT_EQ(schedule.first_divided->iteration, flushed_before[i]->iteration);
          }
        }
        EXPECT_EQ(schedule.first_divided.has_value(), divided > 0);
        EXPECT_EQ(schedule.divided_elements, divided);
        EXPECT_EQ(schedule.last_divided_elements, last_divided);
        ASSERT_TRUE(schedule.first_gradient.has_value());
        EXPECT_EQ(schedule.first_gradient->before, order.front().id);
        // The first bucket with a gradient of this rank's partition.
        std::size_t own = 0;
        const auto owned = [&](const Arrival& a) {
          const std::int64_t repeat = run.segments[a.segment].segment->repeat;
          return layout.owned_layers(a.id, rank).contains(repeat - 1 - a.iteration);
        };
        while (own < buckets.size() &&
               std::none_of(buckets[own].begin(), buckets[own].end(), owned))
          ++own;
        ASSERT_EQ(schedule.first_own.has_value(), own < flushed_before.size())
            << capacity << " rank " << rank;
        if (schedule.first_own) {
          EXPECT_EQ(schedule.first_own->before, flushed_before[own]->id);
          EXPECT_EQ(schedule.first_own->iteration, flushed_before[own]->iteration);
        }
      }
    }
  }
}

TEST(CutBackward, PutsEachPlaceInARepeatOfOne) {
  const Model model = small_llama(6, false);
  const ModelRun run = run_segments(model, zero_plan(2, "bf16-master", 4));
  const auto lengths = [&](std::vector<std::optional<BackwardPlace>> cuts) {
    std::vector<std::int64_t> out;
    for (const SegmentRepeat& s : cut_backward(run, cuts)) out.push_back(s.count);
    return out;
  };
  using Lengths = std::vector<std::int64_t>;
  EXPECT_EQ(lengths({std::nullopt}), (Lengths{1, 6, 1}));
  EXPECT_EQ(lengths({BackwardPlace{1, 2, 0}}), (Lengths{1, 2, 1, 3, 1}));
  EXPECT_EQ(lengths({BackwardPlace{1, 5, 0}, BackwardPlace{1, 0, 0}}), (Lengths{1, 1, 4, 1, 1}));
  EXPECT_EQ(lengths({BackwardPlace{1, 2, 0}, BackwardPlace{1, 2, 1}}), (Lengths{1, 2, 1, 3, 1}));
}

TEST(PersistentParameters, AreMarkedUpToTheModelsLimit) {
  const Model model = small_llama(3, false);
  Plan plan = zero_plan(3, "bf16-master", 4);
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.param_persistence_threshold = 64;  // the norms: 2 a layer and the last one
  const ModelRun run = run_segments(model, plan);
  const Engine engine = engine_of(model, plan);
  EXPECT_EQ(GatherPlan(model, plan, run, engine).persistent_bytes(), 2 * 64 * 7);
  zero.param_persistence_threshold = 63;
  EXPECT_EQ(GatherPlan(model, plan, run, engine).persistent_bytes(), 0);
  zero.param_persistence_threshold = 64;
  zero.model_persistence_threshold = 64;  // room for the last norm alone
  EXPECT_EQ(GatherPlan(model, plan, run, engine).persistent_bytes(), 2 * 64);
}

TEST(SubGroups, AreCutInTheOrderOfParameters) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Model model = random_tensors(random);
    const std::int64_t ranks = random.between(1, 4), limit = random.between(1, 120);
    const auto takes = [](const Parameter& p) { return p.numel % 3 != 0; };
    std::vector<std::int64_t> expected{0};
    for (const ParameterGroup& g : model.groups)
      for (std::int64_t layer = 0; layer < g.repeat; ++layer)
        for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
          const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
          if (!p.trainable || !takes(p)) continue;
          if (expected.back() >= limit) expected.push_back(0);
          expected.back() += (p.numel + ranks - 1) / ranks;
        }
    if (expected.back() == 0) expected.pop_back();
    EXPECT_EQ(sub_group_sizes(model, ranks, limit, takes), expected) << seed;
  }
}

/// Segments of 3,822 and 3,850 MiB, in this order, in a run of Qwen3-4B on two GPUs
/// (docs/evidence/measurements.md, "Two NVIDIA H200").
TEST(SubGroups, AreThoseThatTheAllocatorsSegmentsShowed) {
  constexpr std::int64_t kHidden = 2560, kFfn = 9728, kWidth = 4096, kGrouped = 1024;
  ModelBuilder m({});
  m.embedding("embed", 151936, kHidden);
  m.begin_repeat("layers", 36);
  for (const std::int64_t out : {kWidth, kGrouped, kGrouped, kWidth, kFfn, kFfn, kFfn})
    m.tensor("m" + std::to_string(out) + ".weight", {out, kHidden}, ParameterKind::linear);
  m.end_repeat();
  const auto sizes =
      sub_group_sizes(m.build(), 2, 1'000'000'000, [](const Parameter&) { return true; });
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(CachingAllocator::segment_size(4 * sizes[0]), 3822 * kMiB);
  EXPECT_EQ(CachingAllocator::segment_size(4 * sizes[1]), 3850 * kMiB);
}

}  // namespace
}  // namespace shardplan
