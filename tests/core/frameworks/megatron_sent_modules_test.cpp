// Megatron-LM's fine-grained activation offloading, against counts by hand from its source
// (megatron/core/pipeline_parallel/fine_grained_activation_offload.py): no run confirms them yet.
#include <gmock/gmock.h>

#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "program/pinned_memory.h"
#include "simulator/memory.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::megatron_sent_modules_test {
namespace {

using testing::HasSubstr;
using Modules = std::vector<std::string>;

constexpr std::int64_t kHidden = 1024, kSequence = 2048, kHeads = 16, kKeys = 512, kLayers = 4;
constexpr std::int64_t kRows = 2 * kSequence * kHidden;  ///< bytes of a layer's input in bf16
constexpr std::int64_t kOfKeys = 2 * kSequence * kKeys;

Plan sending(Modules modules) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", 1);
  plan.workload.sequence_length = kSequence;
  plan.framework.megatron.offload_modules = std::move(modules);
  return plan;
}

Program program_of(const Plan& plan, std::int64_t layers = kLayers) {
  const Model model = model_of(Json{{"model_type", "llama"},
                                    {"hidden_size", kHidden},
                                    {"intermediate_size", 2816},
                                    {"num_hidden_layers", layers},
                                    {"num_attention_heads", kHeads},
                                    {"num_key_value_heads", kHeads * kKeys / kHidden},
                                    {"vocab_size", 32000},
                                    {"tie_word_embeddings", false}}
                                   .dump(),
                               build_options(plan));
  return lower(model, plan, run_segments(model, plan), 0);
}

std::int64_t copied(const Program& program, bool back) {
  std::int64_t bytes = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::copy && e.to_device == back) bytes += times * e.bytes;
  });
  return bytes;
}

std::int64_t forward_end(const Plan& plan) {
  return simulate_memory(program_of(plan)).of(Phase::forward).end;
}

struct Count {
  Modules modules;
  std::int64_t wide = 0;    ///< tensors of the layer's width
  std::int64_t narrow = 0;  ///< and of the keys'
};

/// qkv_linear is Transformer Engine's norm and linear in one: it keeps its input and what the norm
/// returns. Attention keeps queries, keys, values and its result, which attn_proj keeps too, so
/// that it is sent twice. Statistics of rows are smaller than 1 M elements. Norms are in the
/// linears.
const Count kCounts[] = {
    {{"qkv_linear"}, 2, 0},
    {{"core_attn"}, 2, 2},
    {{"core_attn", "attn_proj"}, 3, 2},
    {{"qkv_linear", "core_attn", "attn_proj"}, 5, 2},
    {{"attn_norm", "mlp_norm"}, 0, 0},
};

/// The last layer's tensors stay: they come first in the backward pass.
TEST(MegatronSentModules, SendsWhatTheModulesKeepOfAllLayersButTheLast) {
  for (const Count& c : kCounts) {
    const Program program = program_of(sending(c.modules));
    const std::int64_t layer = c.wide * kRows + c.narrow * kOfKeys;
    EXPECT_EQ(copied(program, false), (kLayers - 1) * layer) << c.modules.front();
    EXPECT_EQ(copied(program, true), (kLayers - 1) * layer) << c.modules.front();
  }
}

/// In the first iteration the last layer's are sent too, and buffers stay.
TEST(MegatronSentModules, PinsBuffersForAllLayers) {
  for (const Count& c : kCounts)
    EXPECT_EQ(program_of(sending(c.modules)).host.pinned,
              kLayers * (c.wide * pinned_block(kRows) + c.narrow * pinned_block(kOfKeys)));
}

/// At the end of the forward pass what was sent is gone. Attention's result is on the GPU where
/// attn_proj keeps it.
TEST(MegatronSentModules, LeavesTheRestOnTheGpu) {
  const std::int64_t without = forward_end(sending({}));
  EXPECT_EQ(without - forward_end(sending({"qkv_linear"})), (kLayers - 1) * 2 * kRows);
  EXPECT_EQ(without - forward_end(sending({"core_attn"})), (kLayers - 1) * (kRows + 2 * kOfKeys));
  EXPECT_EQ(without - forward_end(sending({"core_attn", "attn_proj"})),
            (kLayers - 1) * (2 * kRows + 2 * kOfKeys));
}

TEST(MegatronSentModules, LeavesNothingBehind) {
  for (const Count& c : kCounts) {
    const Program program = program_of(sending(c.modules));
    EXPECT_EQ(simulate_memory(program).of(Phase::step).end, total_bytes(program.resident));
  }
}

TEST(MegatronSentModules, KeepsTensorsThatAreSmaller) {
  Plan plan = sending({"core_attn"});
  plan.framework.megatron.min_offloaded_tensor_size = kSequence * kHidden;
  EXPECT_EQ(copied(program_of(plan), false), (kLayers - 1) * 2 * kRows);
  plan.framework.megatron.min_offloaded_tensor_size = kSequence * kHidden + 1;
  EXPECT_EQ(copied(program_of(plan), false), 0);
  plan.framework.megatron.min_offloaded_tensor_size = kSequence * kHeads;  // of fp32 row sums too
  EXPECT_EQ(copied(program_of(plan), false),
            (kLayers - 1) * (2 * kRows + 2 * kOfKeys + 4 * kSequence * kHeads));
}

class MegatronSentModulesJob : public testing::Test {
 protected:
  std::string error(const Json& more, const char* modules = R"(["qkv_linear"])") const {
    Json job = Json::parse(R"({"model": "llama-2-7b", "cluster": "8xH100",
        "framework": {"name": "megatron"}, "checkpointing": "none",
        "workload": {"kind": "train", "sequence_length": 4096}})");
    job["framework"]["offload_modules"] = Json::parse(modules);
    job.merge_patch(more);
    return error_text([&] { load_job(job, "job.json", {.hardware = &hardware_}); });
  }
  const HardwareCatalog hardware_ = load_hardware_catalog();
};

TEST_F(MegatronSentModulesJob, RefusesWhatMegatronRefuses) {
  EXPECT_EQ(error(Json::object()), "no error");
  EXPECT_THAT(error(Json::object(), R"(["attn_proj"])"), HasSubstr("whose backward pass needs it"));
  EXPECT_THAT(error({{"framework", {{"transformer_impl", "local"}}}}), HasSubstr("'local'"));
  EXPECT_THAT(error({{"checkpointing", "selective"}}, R"(["core_attn"])"),
              HasSubstr("core_attn is recomputed"));
  EXPECT_EQ(error({{"checkpointing", "selective"}}), "no error");
  EXPECT_THAT(error({{"checkpointing", "full"}}), HasSubstr("whole layers are recomputed"));
  EXPECT_THAT(error(Json::object(), R"(["experts"])"), HasSubstr("offload_modules"));
}

}  // namespace
}  // namespace shardplan::megatron_sent_modules_test
