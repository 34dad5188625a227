// What activation offloading leaves on the GPU, against TRL's own hooks:
// tests/golden/saved_on_host.json was written by tests/accuracy/measure/kept_tensors/saved_on_host.py, which
// counts the storages of a GPU that is not there. A step without hooks differs from the program by
// what the network has beside its blocks, so that each is compared by how far it is from that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "json/reader.h"
#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan::saved_on_host_test {
namespace {

const Json& golden() {
  static const Json kFile = read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/saved_on_host.json");
  return kFile;
}

ActivationOffloading offloading_of(const Json& c) {
  const std::string name = c.at("activation_offloading");
  for (const ActivationOffloading how :
       {ActivationOffloading::streams, ActivationOffloading::one_stream})
    if (name == name_of(how)) return how;
  return ActivationOffloading::none;
}

Plan plan_of_case(const Json& c) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = c.at("batch");
  plan.workload.sequence_length = c.at("sequence");
  plan.activation_offloading = offloading_of(c);
  return plan;
}

Program program_of_case(const Json& c, Checkpointing how = Checkpointing::none) {
  Plan plan = plan_of_case(c);
  plan.checkpointing = how;
  const Model model = model_of(c.at("config").dump());
  return lower(model, plan, run_segments(model, plan), 0);
}

std::int64_t sent(const Program& program, bool back) {
  std::int64_t bytes = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::copy && e.to_device == back) bytes += times * e.bytes;
  });
  return bytes;
}

/// Tables of rotation, which the model makes once, and the hooks send from each block.
std::int64_t tables(const Json& c) {
  const Json& config = c.at("config");
  const auto head = config.at("hidden_size").get<std::int64_t>() /
                    config.at("num_attention_heads").get<std::int64_t>();
  return 2 * 2 * head * c.at("sequence").get<std::int64_t>();
}

TEST(SavedOnHost, LeavesWhatTrlsHooksLeave) {
  std::map<std::string, std::int64_t> measured, simulated;
  for (const Json& c : golden().at("cases")) {
    const std::string model = c.at("case");
    const std::int64_t end = simulate_memory(program_of_case(c)).of(Phase::forward).end;
    const std::int64_t theirs = c.at("forward_end");
    if (offloading_of(c) == ActivationOffloading::none) {
      measured[model] = theirs;
      simulated[model] = end;
      continue;
    }
    EXPECT_NEAR(static_cast<double>(simulated[model] - end),
                static_cast<double>(measured[model] - theirs), static_cast<double>(tables(c)))
        << c.dump();
  }
}

TEST(SavedOnHost, SendsWhatTrlsHooksSend) {
  for (const Json& c : golden().at("cases")) {
    const Program program = program_of_case(c);
    const std::int64_t blocks = c.at("config").at("num_hidden_layers");
    // Both turned tensors of a block send both tables.
    EXPECT_NEAR(static_cast<double>(sent(program, false)), c.at("sent").get<double>(),
                static_cast<double>(2 * blocks * tables(c)) + 2048)
        << c.dump();
    EXPECT_LE(sent(program, true), sent(program, false));
  }
}

TEST(SavedOnHost, LeavesNothingBehind) {
  for (const Json& c : golden().at("cases"))
    for (const Checkpointing how :
         {Checkpointing::none, Checkpointing::full, Checkpointing::selective}) {
      const Program program = program_of_case(c, how);
      EXPECT_EQ(simulate_memory(program).of(Phase::step).end, total_bytes(program.resident))
          << c.dump();
    }
}

/// Kernels that keep fewer tensors: the sixth may be the first that a block sends.
TEST(SavedOnHost, LeavesNothingBehindOfFusedKernels) {
  Plan plan = plan_of_case(golden().at("cases").at(1));
  plan.kernels.patches = true;
  const Json config{
      {"model_type", "qwen3"},  {"hidden_size", 256},       {"intermediate_size", 768},
      {"num_hidden_layers", 6}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
      {"head_dim", 64},         {"vocab_size", 1024},       {"tie_word_embeddings", true}};
  for (const ActivationOffloading how :
       {ActivationOffloading::streams, ActivationOffloading::one_stream}) {
    plan.activation_offloading = how;
    const Model model = model_of(config.dump(), build_options(plan));
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    EXPECT_EQ(simulate_memory(program).of(Phase::step).end, total_bytes(program.resident));
  }
}

/// Gradients that a fused kernel writes over what was brought back outlive its node: the allocator
/// waits for the computing stream (record_stream). Others are freed behind an event.
TEST(SavedOnHost, WaitsForWhatFusedKernelsWriteOver) {
  Plan plan = plan_of_case(golden().at("cases").at(1));
  plan.activation_offloading = ActivationOffloading::streams;
  const auto waiting = [&] {
    const Model model =
        model_of(golden().at("cases").at(1).at("config").dump(), build_options(plan));
    const Program program = lower(model, plan, run_segments(model, plan), 0);
    return std::ranges::count_if(program.blocks, [](const Event& e) {
      return e.kind == Event::Kind::free && e.stream == Stream::copy &&
             e.used_on == Stream::compute;
    });
  };
  EXPECT_EQ(waiting(), 0);
  plan.kernels.patches = true;
  EXPECT_GE(waiting(), 2);  // of SwiGLU's two inputs
}

/// A checkpointed block leaves its input alone, which the hooks send: a buffer of a power of two.
TEST(SavedOnHost, SendsInputsOfCheckpointedBlocks) {
  const Json& c = golden().at("cases").at(1);
  const Program program = program_of_case(c, Checkpointing::full);
  EXPECT_LT(sent(program, false), sent(program_of_case(c), false));
  EXPECT_GE(program.host.pinned, sent(program, false));
}

}  // namespace
}  // namespace shardplan::saved_on_host_test
