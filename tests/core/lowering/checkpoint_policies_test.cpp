// What checkpointing policies keep, against what PyTorch keeps:
// tests/golden/checkpoint_policies.json was written by
// tests/accuracy/measure/kept_tensors/checkpoint_policies.py on a CPU, each storage rounded as on a GPU. What
// the network has beside its blocks is the same under all policies, so that each is compared by how
// far it is from checkpointing every block.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "json/reader.h"
#include "load/checkpointing.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"
#include "trainers/description.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

const Json& golden() {
  static const Json kFile =
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/checkpoint_policies.json");
  return kFile;
}

Plan plan_of_case(const Json& c, FrameworkKind framework) {
  Plan plan = plan_of(framework, c.at("precision").get<std::string>(), 1);
  plan.workload.micro_batch = c.at("batch");
  plan.workload.sequence_length = c.at("sequence");
  ObjectReader job(c, "case");
  read_checkpointing(job, plan);
  return plan;
}

std::int64_t forward_end(const Json& c, FrameworkKind framework) {
  const Plan plan = plan_of_case(c, framework);
  const Model model = model_of(c.at("config").dump());
  const MemoryProfile profile = simulate_memory(lower(model, plan, run_segments(model, plan), 0));
  return profile.of(Phase::forward).end;
}

std::string family_of(const Json& c) {
  return c.at("case").get<std::string>() + " " + c.at("precision").get<std::string>();
}

TEST(CheckpointPolicies, KeepWhatPyTorchKeeps) {
  for (const FrameworkKind framework : {FrameworkKind::single, FrameworkKind::ddp}) {
    std::map<std::string, std::int64_t> measured, simulated;  // of every block
    for (const Json& c : golden().at("cases"))
      if (c.at("checkpointing") == "full") {
        measured[family_of(c)] = c.at("forward_end");
        simulated[family_of(c)] = forward_end(c, framework);
      }
    for (const Json& c : golden().at("cases")) {
      const std::string family = family_of(c);
      EXPECT_EQ(forward_end(c, framework) - simulated[family],
                c.at("forward_end").get<std::int64_t>() - measured[family])
          << family << " " << c.at("checkpointing").dump();
    }
  }
}

/// Steps leave behind what they found, whichever blocks are computed again.
TEST(CheckpointPolicies, LeaveNothingBehind) {
  for (const Json& c : golden().at("cases")) {
    const Plan plan = plan_of_case(c, FrameworkKind::fsdp2);
    const Model model = model_of(c.at("config").dump());
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    EXPECT_EQ(simulate_memory(program).of(Phase::step).end, total_bytes(program.resident))
        << c.dump();
  }
}

/// A policy with numbers at its ends is one without.
TEST(CheckpointPolicies, MeetAtTheirEnds) {
  const Model model = model_of(golden().at("cases").front().at("config").dump());
  const auto peak = [&](Checkpointing how, CheckpointShare share) {
    Plan plan = plan_of(FrameworkKind::single, "bf16-autocast", 1);
    plan.workload.micro_batch = 64;
    plan.checkpointing = how;
    plan.checkpoint_share = share;
    return estimate(model, plan, Calibration{}).allocated.point;
  };
  const std::int64_t full = peak(Checkpointing::full, {});
  EXPECT_EQ(peak(Checkpointing::blocks, {.every = 1}), full);
  EXPECT_EQ(peak(Checkpointing::blocks, {.count = 5}), full);
  std::int64_t before = peak(Checkpointing::none, {});
  for (std::int64_t count = 1; count <= 5; ++count) {
    const std::int64_t now = peak(Checkpointing::blocks, {.count = count});
    EXPECT_LE(now, before) << count;
    before = now;
  }
  EXPECT_LT(peak(Checkpointing::selective_op, {.every = 2}),
            peak(Checkpointing::selective_op, {.every = 3}));
  EXPECT_LT(peak(Checkpointing::selective_op, {.every = 3}), peak(Checkpointing::selective, {}));
}

TEST(CheckpointPolicies, TakeTimeBetweenNoneAndFull) {
  const Model model = model_of(golden().at("cases").front().at("config").dump());
  const auto flops = [&](Checkpointing how, CheckpointShare share) {
    Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
    plan.checkpointing = how;
    plan.checkpoint_share = share;
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    double sum = 0;
    for_each_event(program, [&](const Event& e, std::int64_t times) {
      if (e.kind != Event::Kind::compute) return;
      for_each_kernel(program, e,
                      [&](const Kernel& k) { sum += static_cast<double>(times) * flops_of(k); });
    });
    return sum;
  };
  const double none = flops(Checkpointing::none, {});
  const double full = flops(Checkpointing::full, {});
  const double two = flops(Checkpointing::blocks, {.count = 2});
  EXPECT_NEAR(two - none, (full - none) * 2 / 5, 1e-6 * full);
  EXPECT_EQ(two, flops(Checkpointing::blocks, {.every = 2}));
  const double some = flops(Checkpointing::selective_op, {.every = 2});
  EXPECT_LT(flops(Checkpointing::selective, {}), some);
  EXPECT_LT(some, full);
}

/// save_on_cpu around each checkpoint: the input is on the GPU while its block runs, and no longer.
TEST(CheckpointPolicies, OffloadInputsOfCheckpointedBlocks) {
  const Model model = model_of(golden().at("cases").front().at("config").dump());
  const auto program = [&](CheckpointChoice choice) {
    Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
    plan.workload.micro_batch = 3;
    plan.set_checkpointing(choice);
    return lower(model, plan, run_segments(model, plan), 0);
  };
  const auto end = [](const Program& p) { return simulate_memory(p).of(Phase::forward).end; };
  const std::int64_t input = std::int64_t{3} * 128 * 128 * 2;  // samples, tokens, hidden, bf16
  const std::int64_t pinned = 128 * 1024;                      // the next power of two
  const Program kept = program({Checkpointing::full, {}});
  const Program moved = program({Checkpointing::full, {.offload = true}});
  EXPECT_EQ(end(kept) - end(moved), 5 * input);
  EXPECT_EQ(moved.host.pinned - kept.host.pinned, 5 * pinned);
  const Program some = program({Checkpointing::blocks, {.every = 2, .offload = true}});
  EXPECT_EQ(end(program({Checkpointing::blocks, {.every = 2}})) - end(some), 2 * input);
  EXPECT_EQ(some.host.pinned, 2 * pinned);
  std::int64_t to_host = 0, to_gpu = 0;
  for_each_event(moved, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::copy) (e.to_device ? to_gpu : to_host) += times * e.bytes;
  });
  EXPECT_EQ(to_host, 5 * input);
  EXPECT_EQ(to_gpu, 5 * input);
  for (const Program* p : {&moved, &some})
    EXPECT_EQ(simulate_memory(*p).of(Phase::step).end, total_bytes(p->resident));
}

/// Of five blocks transformers' every_n_layers takes the first, third and fifth for two, torchtitan
/// the second and fourth; and torchtitan computes blocks again to their end.
TEST(CheckpointPolicies, FollowTheTrainer) {
  const Model model = model_of(golden().at("cases").front().at("config").dump());
  const auto run = [&](std::string_view trainer, CheckpointChoice choice) {
    Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
    plan.trainer = *std::ranges::find(trainers(), trainer, &TrainerDescription::name);
    plan.set_checkpointing(choice);
    return run_segments(model, plan);
  };
  const auto taken = [&](std::string_view trainer) {
    const ModelRun blocks = run(trainer, {Checkpointing::blocks, {.every = 2}});
    std::int64_t count = 0;
    for (std::int64_t place = 0; place < 5; ++place) count += blocks.own_tapes.has(place) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(taken("hf_trainer"), 3);
  EXPECT_EQ(taken("loop"), 2);
  EXPECT_EQ(taken("torchtitan"), 2);
  const auto again = [&](std::string_view trainer) {
    double flops = 0;
    for (const Kernel& k :
         run(trainer, {Checkpointing::full, {}}).segments[1].backward.backward_kernels)
      flops += flops_of(k);
    return flops;
  };
  // The last product of a block, which nothing saves the result of.
  EXPECT_EQ(again("torchtitan") - again("loop"), 2.0 * 128 * 224 * 128);
}

std::string refusal_of(const std::string& job) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &kHardware;
  try {
    load_job(Json::parse(job), "job.json", context);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(CheckpointPolicies, AreRefusedWithTheReason) {
  const auto refuses = [](const std::string& more, std::string_view reason) {
    const std::string error =
        refusal_of(R"({"model": "llama-3.2-1b", "cluster": "2xH100", )" + more + "}");
    EXPECT_NE(error.find(reason), std::string::npos) << more << ": " << error;
  };
  refuses(R"("framework": "megatron", "checkpointing": "selective_op")", "names modules");
  refuses(R"("framework": "megatron", "checkpointing": "blocks/2")", "--recompute-method block");
  refuses(R"("framework": "megatron", "checkpointing": "full+offload")", "fine-grained");
  refuses(
      R"("framework": "native", "checkpointing": "blocks:2", "workload": {"gradient_accumulation": 2},
         "parallel": {"pipeline": 2, "virtual_pipeline": 2, "schedule": "interleaved"})",
      "take turns in the same memory");
  refuses(R"("framework": {"name": "deepspeed", "zero_stage": 3}, "checkpointing": "blocks:2")",
          "order of gathers");
  refuses(R"("framework": "ddp", "checkpointing": "blocks:17")", "the model has 16 blocks");
  refuses(R"("framework": "ddp", "checkpointing": "none+offload")", "no block is checkpointed");
  refuses(R"("framework": "ddp", "compile": true, "checkpointing": "blocks:2")", "compiled");
  EXPECT_EQ(refusal_of(R"({"model": "llama-3.2-1b", "cluster": "2xH100", "framework": "megatron",
                           "checkpointing": "blocks:2"})"),
            "");
  EXPECT_EQ(refusal_of(R"({"model": "llama-3.2-1b", "cluster": "2xH100", "framework": "native",
                           "checkpointing": "blocks:2"})"),
            "");
  EXPECT_EQ(refusal_of(R"({"model": "llama-3.2-1b", "cluster": "2xH100", "framework": "native",
                           "checkpointing": "selective_op"})"),
            "");
}

std::string error_of(const std::string& job) {
  const Json json = Json::parse(job);
  ObjectReader reader(json, "job.json");
  Plan plan;
  try {
    read_checkpointing(reader, plan);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(CheckpointPolicies, AreReadAsWordsAndAsObjects) {
  const auto read = [](const std::string& value) {
    const Json json = Json::parse(R"({"checkpointing": )" + value + "}");
    ObjectReader reader(json, "job.json");
    Plan plan;
    read_checkpointing(reader, plan);
    return std::pair(plan.checkpointing, plan.checkpoint_share);
  };
  using Both = std::pair<Checkpointing, CheckpointShare>;
  EXPECT_EQ(read(R"("blocks:8")"), Both(Checkpointing::blocks, {.count = 8}));
  EXPECT_EQ(read(R"("blocks/2")"), Both(Checkpointing::blocks, {.every = 2}));
  EXPECT_EQ(read(R"({"policy": "blocks", "every": 2})"), read(R"("blocks/2")"));
  EXPECT_EQ(read(R"("selective_op")"), Both(Checkpointing::selective_op, {.every = 2}));
  EXPECT_EQ(read(R"("selective_op:3")"), Both(Checkpointing::selective_op, {.every = 3}));
  EXPECT_EQ(read(R"("full+offload")"), Both(Checkpointing::full, {.offload = true}));
  EXPECT_EQ(read(R"({"policy": "full"})"), Both(Checkpointing::full, {}));
  EXPECT_NE(error_of(R"({"checkpointing": "blocks"})").find("no word of which ones"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": "blocks:x"})").find("blocks:8"), std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": {"every": 2}})").find("checkpointing.policy"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": {"policy": "full", "count": 2}})").find("'full'"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": "selective_op:1"})").find("no product would be kept"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": "ful"})").find("did you mean 'full'"), std::string::npos);
  EXPECT_NE(error_of(R"({"checkpointing": 2})").find("blocks:8"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
