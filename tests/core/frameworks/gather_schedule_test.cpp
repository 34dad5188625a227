// Stage 3's gathers against what partitioned_param_coordinator.py (DeepSpeed 0.19.6) does in a step
// whose order it knows.
#include <gtest/gtest.h>

#include "frameworks/deepspeed/gather_schedule.h"
#include "lowering/rank_model.h"
#include "support/plan_testing.h"

namespace shardplan::gather_schedule_test {
namespace {

constexpr std::int64_t kLinear = std::int64_t{512} * 512;  // of q, k, v and o; up to three times

/// A Llama of seven linears a layer, all of them gathered; its norms are always there.
struct Step {
  Model model;
  Plan plan = zero_plan(3, "bf16-master", 4);
  explicit Step(int layers)
      : model(model_of(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8,
          "intermediate_size": 1024, "vocab_size": 1024, "tie_word_embeddings": false,
          "num_hidden_layers": )" +
                       std::to_string(layers) + "}")) {
    ZeroOptions& zero = plan.framework.deepspeed.zero;
    zero.param_persistence_threshold = 512;
    zero.max_reuse_distance = 0;
  }

  template <typename Look>
  void look(Look&& look) const {
    const RankModel share(model, plan);
    const Engine engine = engine_of(share.model(), plan);
    const Stage3 z(share.model(), plan, share.run(), engine);
    look(z, GatherSchedule(z, {}, true));
  }
};

GatherCall call_of(const GatherSchedule& schedule, std::size_t bucket) {
  GatherCall call;
  schedule.describe(bucket, call);
  return call;
}

/// Every action of both passes, with layers in a row counted as often as they run.
std::int64_t count(const GatherSchedule& schedule, bool backward, GatherAction::Kind kind) {
  std::int64_t sum = 0;
  const auto add = [&](std::span<const GatherAction> actions, std::int64_t times) {
    for (const GatherAction& action : actions) sum += action.kind == kind ? times : 0;
  };
  add(schedule.opening(backward), 1);
  const std::vector<SegmentRepeat>& repeats = schedule.repeats(backward);
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    std::size_t i = schedule.begin(backward, k);
    do add(schedule.at(i).actions, repeats[k].count);
    while (++i < schedule.order().size() && !schedule.order()[i].begins_layer);
  }
  return sum;
}

TEST(FetchOrder, HasEachModuleOfEachLayerInBothPasses) {
  Step(3).look([](const Stage3&, const GatherSchedule& schedule) {
    const std::vector<ModuleEvent>& order = schedule.order();
    std::int64_t uses = 0;
    for (const ModuleEvent& event : order)
      if (!event.backward && !event.release) ++uses;
    EXPECT_EQ(uses, 3 * 9 + 3);  // seven linears and two norms; both ends and the last norm
    EXPECT_TRUE(order.front().begins_pass);
    EXPECT_EQ(order.front().containers, 1);  // "model" around the embedding
    EXPECT_TRUE(std::ranges::is_sorted(order, {}, &ModuleEvent::backward));
  });
}

TEST(GatherSchedule, GathersEachTensorWhenItIsUsedWithoutPrefetching) {
  Step step(3);
  step.plan.framework.deepspeed.zero.prefetch_bucket_size = 0;
  step.look([](const Stage3&, const GatherSchedule& schedule) {
    EXPECT_EQ(count(schedule, false, GatherAction::Kind::gather), 3 * 7 + 2);
    EXPECT_EQ(count(schedule, false, GatherAction::Kind::settle), 3 * 7 + 2);
  });
}

// All of a small model is gathered in the forward pass, before its first layer is through, and what
// the queue has come upon stays for the backward pass.
TEST(GatherSchedule, GathersASmallModelOnceAndKeepsIt) {
  Step(12).look([](const Stage3&, const GatherSchedule& schedule) {
    EXPECT_EQ(count(schedule, true, GatherAction::Kind::gather), 0);
    const SegmentRepeat& blocks = schedule.repeats(true)[1];
    EXPECT_EQ(blocks.count, 12);  // alike in the backward pass
  });
}

TEST(GatherSchedule, BucketsHaveTheTensorsThatReachTheirSize) {
  Step step(12);
  step.plan.framework.deepspeed.zero.prefetch_bucket_size = 3 * kLinear;
  step.look([](const Stage3&, const GatherSchedule& schedule) {
    // The embedding is two linears long; what comes next makes the bucket full.
    ASSERT_EQ(schedule.opening(false).size(), 1U);
    const GatherCall call = call_of(schedule, schedule.opening(false).front().bucket);
    EXPECT_EQ(call.set.ids.size(), 2U);
  });
}

// Room is what max_live_parameters leave: beyond it nothing is gathered ahead.
TEST(GatherSchedule, GathersAheadOnlyWhileThereIsRoom) {
  Step step(12);
  step.plan.framework.deepspeed.zero.max_live_parameters = 1;
  step.look([](const Stage3&, const GatherSchedule& schedule) {
    for (std::size_t i = 0; i < schedule.order().size(); ++i)
      for (const GatherAction& action : schedule.at(i).actions) {
        if (action.kind != GatherAction::Kind::gather) continue;
        EXPECT_EQ(call_of(schedule, action.bucket).set.ids.size(), 1U);
      }
    EXPECT_EQ(count(schedule, true, GatherAction::Kind::gather), 12 * 7 + 2);
  });
}

/// __params_to_release: after a module has run, its parameters stay if one of the modules that
/// follow within the reuse distance needs them.
void expect_reuse_by_brute_force(const Stage3& z, const std::vector<ModuleEvent>& order) {
  ParameterCoordinator coordinator(z.divided(), order, {}, true);
  std::vector<GatherAction> actions;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!order[i].release) {
      coordinator.use(actions);
      continue;
    }
    std::int64_t traversed = 0;
    bool stays = false;
    for (std::size_t k = i + 1; k < order.size(); ++k) {
      if (order[k].release) continue;
      if (traversed >= z.zero.max_reuse_distance) break;
      stays = stays || (order[k].module == order[i].module && order[k].layer == order[i].layer);
      for (const ParameterId p :
           z.model.modules[static_cast<std::size_t>(order[k].module)].parameters)
        traversed += z.model.parameters[static_cast<std::size_t>(p)].numel;
    }
    const std::size_t tensors = coordinator.tensors_of(order[i]).size();
    ASSERT_EQ(coordinator.release(order[i]).size(), stays ? 0 : tensors)
        << "distance " << z.zero.max_reuse_distance << ", event " << i;
  }
}

TEST(GatherSchedule, KeepsWhatIsUsedAgainWithinTheReuseDistance) {
  for (const int layers : {1, 2, 5})
    for (std::int64_t distance = 0; distance < 30 * kLinear; distance += 123'457) {
      Step step(layers);
      step.plan.framework.deepspeed.zero.max_reuse_distance = distance;
      step.plan.framework.deepspeed.zero.prefetch_bucket_size = 0;
      step.look([](const Stage3& z, const GatherSchedule& schedule) {
        expect_reuse_by_brute_force(z, schedule.order());
      });
    }
}

TEST(GatherSchedule, PutsLayersThatDoTheSameTogether) {
  Step step(96);
  step.plan.framework.deepspeed.zero.max_live_parameters = 20 * kLinear;
  step.look([](const Stage3&, const GatherSchedule& schedule) {
    for (const bool backward : {false, true}) {
      std::int64_t layers = 0;
      for (const SegmentRepeat& repeat : schedule.repeats(backward)) layers += repeat.count;
      EXPECT_EQ(layers, 96 + 2);
      EXPECT_LT(schedule.repeats(backward).size(), 24U);
    }
  });
}

/// What each layer of a pass does, as text, in the order in which they run.
std::vector<std::string> layers_of(const GatherSchedule& schedule, bool backward) {
  std::vector<std::string> layers;
  const auto name = [&](const GatherAction& action) {
    std::string text = std::to_string(static_cast<int>(action.kind));
    for (const ParameterId id : call_of(schedule, action.bucket).set.ids)
      text += "," + std::to_string(id);
    return text + ";";
  };
  for (std::size_t k = 0; k < schedule.repeats(backward).size(); ++k) {
    std::string text;
    std::size_t i = schedule.begin(backward, k);
    do {
      const ModuleGathers gathers = schedule.at(i);
      for (const GatherAction& action : gathers.actions) text += name(action);
      text += "ahead from " + std::to_string(gathers.ahead) + ", waits";
      for (const AwaitedTensor& t : gathers.awaited) text += " " + std::to_string(t.id);
      text += ", lets go";
      for (const ReleasedTensor& t : gathers.gone)
        text += " " + std::to_string(t.id) + (t.divides ? "d" : "");
      text += "\n";
    } while (++i < schedule.order().size() && !schedule.order()[i].begins_layer);
    layers.insert(layers.end(), static_cast<std::size_t>(schedule.repeats(backward)[k].count),
                  text);
  }
  return layers;
}

// A run without most layers is believed where it is steady: then the whole run says the same.
TEST(GatherSchedule, WithoutMiddleLayersSaysWhatTheWholeRunSays) {
  int shorter = 0;
  for (const int layers : {40, 61})
    for (std::int64_t live = kLinear; live < 100 * kLinear; live = live * 5 / 3 + 12'345)
      for (const std::int64_t bucket : {std::int64_t{0}, kLinear / 2, 2 * kLinear, 11 * kLinear})
        for (const std::int64_t reuse : {std::int64_t{0}, 7 * kLinear, 40 * kLinear, live}) {
          Step step(layers);
          ZeroOptions& zero = step.plan.framework.deepspeed.zero;
          zero.max_live_parameters = live;
          zero.prefetch_bucket_size = bucket;
          zero.max_reuse_distance = reuse;
          if (layers == 61) step.plan.checkpointing = Checkpointing::full;
          step.look([&](const Stage3& z, const GatherSchedule& whole) {
            const GatherSchedule quick = gather_schedule(z, true);
            shorter += quick.order().size() < whole.order().size();
            for (const bool backward : {false, true})
              ASSERT_EQ(layers_of(quick, backward), layers_of(whole, backward))
                  << "live " << live << ", bucket " << bucket << ", reuse " << reuse;
          });
        }
  EXPECT_GT(shorter, 200);
}

}  // namespace
}  // namespace shardplan::gather_schedule_test
