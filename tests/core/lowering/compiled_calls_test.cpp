// What the host calls around the kernels of compiled steps.
#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::compiled_calls_test {
namespace {

/// Calls of a step's passes that are issued as `issue`.
std::int64_t calls(const std::string& model, Issue issue) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(parse_json(R"({"model": {)" + model + R"(, "vocab_size": 4096},
          "cluster": "1xH100", "precision": "bf16-pure", "compile": true,
          "workload": {"kind": "train", "micro_batch": 1, "sequence_length": 256}})",
                                      "job.json"),
                           "job.json", context);
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), 0);
  std::int64_t sum = 0;
  Phase phase = Phase::forward;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::begin_phase) phase = e.phase;
    if (e.kind != Event::Kind::compute || phase == Phase::step) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.issue == issue) sum += times * k.calls;
    });
  });
  return sum;
}

const std::string kOpt = R"("model_type": "opt", "hidden_size": 256, "ffn_dim": 1024,
    "word_embed_proj_dim": 256, "num_attention_heads": 4, "num_hidden_layers": )";
const std::string kGpt2 = R"("model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_layer": )";
const std::string kLlama = R"("model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
    "num_attention_heads": 4, "num_hidden_layers": )";

// LayerDrop breaks OPT's graph between layers; the others are one graph in both passes.
TEST(CompiledCalls, AGraphForEachLayerAndPassWhereGraphsBreakBetweenThem) {
  EXPECT_EQ(calls(kOpt + "9", Issue::graph) - calls(kOpt + "4", Issue::graph), 5 * 2);
  EXPECT_EQ(calls(kLlama + "9", Issue::graph), calls(kLlama + "4", Issue::graph));
}

// Four linears of a layer of GPT-2 have a bias, none of Llama's; attention is a call in each pass.
TEST(CompiledCalls, AProductWithABiasAndAttentionTakeLonger) {
  EXPECT_EQ(calls(kGpt2 + "9", Issue::loop) - calls(kGpt2 + "4", Issue::loop), 5 * (4 + 2) * 2);
  EXPECT_EQ(calls(kLlama + "9", Issue::loop) - calls(kLlama + "4", Issue::loop), 5 * 2 * 2);
}

// Nine gradients of a layer of Llama, and at least as many tensors that were kept for it.
TEST(CompiledCalls, WhatWasKeptIsLookedAtBeforeTheBackwardPass) {
  EXPECT_GE(calls(kLlama + "9", Issue::listed) - calls(kLlama + "4", Issue::listed), 5 * 18);
}

}  // namespace
}  // namespace shardplan::compiled_calls_test
