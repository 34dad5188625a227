// Step programs: whatever a step allocates it frees, for every framework and option.
#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "simulator/reserved.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan {
namespace {

constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 256,
  "intermediate_size": 704, "num_hidden_layers": 5, "num_attention_heads": 8,
  "num_key_value_heads": 2, "vocab_size": 1000})";
constexpr std::string_view kTiedLlama = R"({"model_type": "llama", "hidden_size": 256,
  "intermediate_size": 704, "num_hidden_layers": 5, "num_attention_heads": 8, "vocab_size": 1000,
  "tie_word_embeddings": true})";
/// One table for the encoder, the decoder and the head: three gradients of one parameter.
constexpr std::string_view kT5 = R"({"model_type": "t5", "d_model": 128, "d_ff": 256,
  "num_layers": 3, "num_heads": 4, "d_kv": 32, "vocab_size": 1000})";
/// A norm of its own for each head: twelve small tensors a layer that one `cat` joins.
constexpr std::string_view kStableLm = R"({"model_type": "stablelm", "hidden_size": 128,
  "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8,
  "num_key_value_heads": 4, "vocab_size": 1000, "qk_layernorm": true,
  "use_parallel_residual": true})";
constexpr std::string_view kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 192, "n_layer": 4, "n_head": 6, "vocab_size": 1003})";

struct Case {
  std::string name;
  std::string_view config;
  Plan plan;
  bool lora = false;
};

/// Every framework and precision that can be lowered, before model and workload.
std::vector<std::pair<std::string, Plan>> frameworks() {
  std::vector<std::pair<std::string, Plan>> all;
  for (const auto* precision : {"fp32", "bf16-autocast", "bf16-pure", "bf16-master"})
    all.emplace_back(std::string("single_") + precision,
                     plan_of(FrameworkKind::single, precision, 1));
  for (const bool views : {false, true}) {
    for (const bool zero : {false, true}) {
      Plan plan = plan_of(FrameworkKind::ddp, "bf16-autocast", 4);
      plan.framework.ddp.gradient_as_bucket_view = views;
      plan.framework.ddp.zero_redundancy_optimizer = zero;
      all.emplace_back(std::string("ddp") + (views ? "_views" : "") + (zero ? "_zero" : ""), plan);
    }
  }
  for (int stage = 0; stage <= 3; ++stage) {
    for (const auto* precision : {"bf16-master", "fp16-master", "fp32"}) {
      for (const std::int64_t ranks : {1, 3, 16}) {
        Plan plan = zero_plan(stage, precision, ranks);
        plan.gradient_clipping = 1.0;
        const std::string name =
            "zero" + std::to_string(stage) + "_" + precision + "_on" + std::to_string(ranks);
        all.emplace_back(name, plan);
        // Buckets that are flushed many times, and a reuse window inside the model.
        ZeroOptions& zero = plan.framework.deepspeed.zero;
        zero.reduce_bucket_size = 100'000;
        zero.prefetch_bucket_size = 50'000;
        zero.max_reuse_distance = 1'500'000;
        zero.param_persistence_threshold = 1000;
        all.emplace_back(name + "_small_buckets", plan);
        if (stage == 0) continue;
        zero.offload_optimizer.device = OffloadDevice::cpu;
        all.emplace_back(name + "_offload", plan);
        if (stage < 3) continue;
        zero.offload_param.device = OffloadDevice::nvme;
        all.emplace_back(name + "_offload_all", plan);
      }
    }
  }
  Plan bf16 = zero_plan(1, "bf16-master", 4);
  bf16.framework.deepspeed.grad_accum_dtype = DType::f32;
  all.emplace_back("bf16_optimizer", bf16);
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [name, base] : frameworks()) {
    for (const auto& [model, config] :
         {std::pair("llama", kLlama), std::pair("tied", kTiedLlama), std::pair("gpt2", kGpt2),
          std::pair("t5", kT5), std::pair("stablelm", kStableLm)}) {
      for (const auto checkpointing : {Checkpointing::none, Checkpointing::full}) {
        for (const std::int64_t accumulation : {1, 2, 3}) {
          Case c{name + "_" + model, config, base};
          if (checkpointing == Checkpointing::full) c.name += "_checkpointed";
          c.name += "_accumulate" + std::to_string(accumulation);
          c.plan.checkpointing = checkpointing;
          c.plan.workload.gradient_accumulation = accumulation;
          all.push_back(c);
        }
      }
    }
    Case lora{name + "_lora", kLlama, base, true};
    lora.plan.workload.gradient_accumulation = 2;
    all.push_back(lora);
  }
  return all;
}

Model build(const Case& c) {
  BuildOptions options;
  if (c.lora) options.lora = Lora{8, {"q_proj", "v_proj"}};
  return model_of(c.config, options);
}

TEST(Programs, EndAStepAsTheyBeganIt) {
  for (const Case& c : cases()) {
    const Model model = build(c);
    const ModelRun run = run_segments(model, c.plan);
    for (const std::int64_t rank : distinct_ranks(model, c.plan)) {
      const Played played = play(lower(model, c.plan, run, rank));
      for (std::size_t i = 0; i < kCategoryCount; ++i) {
        const Category category = static_cast<Category>(i);
        EXPECT_EQ(played.at_end[i] - played.profile.at_start[i], 0)
            << c.name << " rank " << rank << ": " << name_of(category) << " left at the end";
        EXPECT_GE(played.least[i], 0) << c.name << " rank " << rank << ": more "
                                      << name_of(category) << " freed than there were";
      }
    }
  }
}

TEST(Programs, AreSimulatedAsIfUnrolled) {
  for (const Case& c : cases()) {
    const Model model = build(c);
    const ModelRun run = run_segments(model, c.plan);
    const Program program = lower(model, c.plan, run, 0);
    const MemoryProfile fast = simulate_memory(program);
    const MemoryProfile slow = play(program).profile;
    ASSERT_EQ(fast.peak, slow.peak) << c.name;
    ASSERT_EQ(fast.at_peak, slow.at_peak) << c.name;
    for (std::size_t p = 0; p < 3; ++p) {
      ASSERT_EQ(fast.phases[p].peak, slow.phases[p].peak) << c.name;
      ASSERT_EQ(fast.phases[p].end, slow.phases[p].end) << c.name;
    }
  }
}

// The allocator frees blocks, not bytes: every free must find its own.
TEST(Programs, AllocateAndFreeWholeBlocks) {
  for (const Case& c : cases()) {
    const Model model = build(c);
    const Program program = lower(model, c.plan, run_segments(model, c.plan), 0);
    const ReservedProfile profile = simulate_reserved(program);
    const auto peak = static_cast<double>(simulate_memory(program).peak);
    EXPECT_FALSE(profile.out_of_memory) << c.name;
    EXPECT_GE(profile.reserved, profile.allocated) << c.name;
    EXPECT_GE(static_cast<double>(profile.allocated), 0.999 * peak) << c.name;
  }
}

std::size_t events_of(std::int64_t hidden, std::int64_t layers, std::int64_t ranks, int stage) {
  const Json config{
      {"model_type", "llama"},    {"hidden_size", hidden}, {"intermediate_size", hidden * 11 / 4},
      {"num_attention_heads", 8}, {"vocab_size", 1000},    {"num_hidden_layers", layers}};
  const Model model = model_of(config.dump());
  const Plan plan = zero_plan(stage, "bf16-master", ranks);
  return lower(model, plan, run_segments(model, plan), 0).events.size();
}

TEST(Programs, DoNotGrowWithLayersOrRanks) {
  for (int stage = 0; stage <= 2; ++stage) {
    EXPECT_EQ(events_of(256, 32, 8, stage), events_of(256, 126, 8, stage));
    EXPECT_EQ(events_of(256, 32, 8, stage), events_of(256, 32, 1024, stage));
  }
}

/// Stage 3's layers differ at the ends of what it gathers ahead, and are alike between them.
TEST(Programs, OfStage3GrowLittle) {
  EXPECT_LT(events_of(8192, 126, 8, 3), events_of(8192, 32, 8, 3) * 5 / 4);
  EXPECT_LT(events_of(8192, 32, 1024, 3), events_of(8192, 32, 8, 3) * 5 / 4);
}

TEST(Programs, LeaveRoomForTheTrialsOfUnalignedHeads) {
  const auto room = [](std::string_view config, bool compiled) {
    const Model model = model_of(config);
    Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
    if (compiled) plan.compile = Compile{};
    return lower(model, plan, run_segments(model, plan), 0).most_workspaces_over;
  };
  EXPECT_GT(room(kGpt2, true), room(kGpt2, false));
  EXPECT_EQ(room(kLlama, true), room(kLlama, false));
}

TEST(Programs, RefuseANetworkThatTheNativeEngineDoesNotRun) {
  const Model model = equal_tensors(1, 512);
  const Plan plan = plan_of(FrameworkKind::native, "fp32", 2);
  EXPECT_THROW(lower(model, plan, run_segments(model, plan), 0), InputError);
}

}  // namespace
}  // namespace shardplan
