// core's prediction of a job beside a dry run of the engine, phase by phase.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "estimate/estimate.h"
#include "launch/run.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "simulator/memory.h"
#include "validator/documented_workspace.h"

namespace shardplan::validator::testing {

struct Compared {
  Estimate predicted;
  MemoryPlan plan;
  std::int64_t ranks_per_node = 1;
};

inline Compared compare(const Json& document) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const EngineJob job = load_engine_job(document, "test.json", kHardware);
  const int world = static_cast<int>(job.plan().cluster.world());
  const bool on_host = job.on_host();
  return {estimate(job.job.model, job.plan(), load_calibration()),
          plan_memory(
              job, world - 1, world,
              [=](const StepShapes& s) { return on_host ? 0 : documented_cuda_workspace(s); },
              std::int64_t{1} << 50),
          job.plan().cluster.gpus_per_node};
}

inline void expect_same(const Json& document, const std::string& what) {
  const auto [predicted, plan, ranks] = compare(document);
  const MemoryProfile& planned = plan.device;
  EXPECT_EQ(predicted.host_per_node.pinned, ranks * plan.host.pinned) << what << ": pinned";
  EXPECT_EQ(predicted.host_per_node.pageable, ranks * plan.host.pageable) << what << ": pageable";
  EXPECT_EQ(predicted.host_per_node.nvme, ranks * plan.host.nvme) << what << ": NVMe";
  EXPECT_EQ(predicted.model_bytes, planned.of(Phase::model).end) << what;
  constexpr Phase kPhases[] = {Phase::forward, Phase::backward, Phase::step};
  for (std::size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(predicted.phases[p].peak, planned.of(kPhases[p]).peak)
        << what << ", peak of " << kPhaseNames[p + 1];
    EXPECT_EQ(predicted.phases[p].end, planned.of(kPhases[p]).end)
        << what << ", end of " << kPhaseNames[p + 1];
  }
  EXPECT_EQ(predicted.allocated.point, planned.peak()) << what;
  for (const CategoryLine& line : predicted.breakdown) {
    const bool state =
        line.category == Category::parameters || line.category == Category::master_parameters ||
        line.category == Category::optimizer_states || line.category == Category::gradients;
    if (!state) continue;
    EXPECT_EQ(line.resident, planned.resident[index_of(line.category)])
        << what << ": " << name_of(line.category);
  }
}

inline Json job(const Json& model, std::int64_t stage, const std::string& cluster,
                const std::string& precision, const std::string& checkpointing, std::int64_t batch,
                std::int64_t sequence, std::int64_t accumulation = 1) {
  return {{"model", model},
          {"cluster", cluster},
          {"framework", {{"name", "native"}, {"zero_stage", stage}}},
          {"workload",
           {{"micro_batch", batch},
            {"sequence_length", sequence},
            {"gradient_accumulation", accumulation}}},
          {"precision", precision},
          {"checkpointing", checkpointing}};
}

/// The same with states on the host or in a file, and at stage 3 with parameters there too.
inline void expect_same_offloaded(Json document, const std::string& what,
                                  const char* kept = "cpu") {
  if (std::string(kept) == "cpu") expect_same_offloaded(document, what + ", NVMe", "nvme");
  Json& framework = document["framework"];
  framework["offload_optimizer"] = kept;
  expect_same(document, what + ", offloaded");
  framework["delayed_update"] = true;
  expect_same(document, what + ", delayed");
  if (framework["zero_stage"] != 3) return;
  for (const char* place : {"cpu", "nvme"})
    for (const bool delayed : {true, false}) {
      framework["offload_param"] = place;
      framework["delayed_update"] = delayed;
      expect_same(document,
                  fmt::format("{}, parameters on {}{}", what, place, delayed ? ", delayed" : ""));
    }
}

/// `document` with what blocks keep on the host.
inline Json sent(Json document) {
  document["checkpointing"] = {{"policy", document["checkpointing"]}, {"offload", true}};
  return document;
}

/// `document` with layers shared among `tensor` ranks.
inline Json shared(Json document, std::int64_t tensor) {
  document["parallel"] = {{"tensor", tensor}};
  return document;
}

/// `document` with the blocks' products in 8 bits.
inline Json narrowed(Json document, const char* linear) {
  document["precision"] = {{"preset", document["precision"]}, {"linear", linear}};
  return document;
}

/// `document` with adapters beside some layers, over a base that is stored as `base`.
inline Json adapted(Json document, const char* targets, const char* base, std::int64_t rank) {
  document["workload"]["method"] = "lora";
  document["workload"]["lora"] = {
      {"rank", rank}, {"targets", Json::parse(targets)}, {"quantization", base}};
  return document;
}

/// And beside the experts' own matrices.
inline Json adapted_experts(Json document, const char* parameters) {
  document["workload"]["lora"]["target_parameters"] = Json::parse(parameters);
  return document;
}

/// With the experts' matrices stored as the base is.
inline Json quantized_experts(Json document) {
  document["workload"]["lora"]["quantize_experts"] = true;
  return document;
}

inline Json mixtral(std::int64_t experts, std::int64_t per_token) {
  return {{"model_type", "mixtral"},      {"hidden_size", 256},
          {"intermediate_size", 448},     {"num_hidden_layers", 5},
          {"num_attention_heads", 8},     {"num_key_value_heads", 4},
          {"num_local_experts", experts}, {"num_experts_per_tok", per_token},
          {"vocab_size", 1000},           {"output_router_logits", true}};
}

inline Json qwen3_moe() {
  return {{"model_type", "qwen3_moe"},
          {"hidden_size", 192},
          {"moe_intermediate_size", 80},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 6},
          {"num_key_value_heads", 2},
          {"head_dim", 40},
          {"num_experts", 16},
          {"num_experts_per_tok", 5},
          {"attention_bias", true},
          {"tie_word_embeddings", true},
          {"vocab_size", 131}};
}

/// `document` with experts divided over `ranks`, which have room for `capacity_factor` as many rows
/// as an even share.
inline Json divided(Json document, std::int64_t ranks, double capacity_factor) {
  document["parallel"] = {{"expert", ranks}};
  document["framework"]["capacity_factor"] = capacity_factor;
  return document;
}

/// `document` with sequences shared among `context` ranks, and layers among `tensor`.
inline Json ringed(Json document, std::int64_t context, std::int64_t tensor = 1) {
  document["parallel"] = {{"context", context}, {"tensor", tensor}};
  return document;
}

/// `document` with experts, whose load-balancing loss is all layers' together, without it.
inline Json unbalanced(Json document) {
  document["model"]["output_router_logits"] = false;
  return document;
}

/// Every stage of a pipeline: its ranks need different amounts.
inline void expect_same_of_stages(const Json& document, const std::string& what) {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  const EngineJob job = load_engine_job(document, "test.json", kHardware);
  const Plan& plan = job.plan();
  const int world = static_cast<int>(plan.cluster.world());
  const int stages = job.training.pipeline.stages;
  const RankModel share(job.job.model, plan);
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = stage * (world / stages) + world / stages - 1;
    const Program program = lower(share.model(), plan, share.run(), rank);
    const auto predicted = simulate_memory(program);
    const auto planned =
        plan_memory(job, rank, world, documented_cuda_workspace, std::int64_t{1} << 50).device;
    const std::string where = fmt::format("{}, stage {}", what, stage);
    EXPECT_EQ(program.model_bytes, planned.of(Phase::model).end) << where;
    constexpr Phase kPhases[] = {Phase::forward, Phase::backward, Phase::step};
    for (std::size_t p = 0; p < 3; ++p) {
      EXPECT_EQ(predicted.phases[p].peak, planned.of(kPhases[p]).peak)
          << where << ", peak of " << kPhaseNames[p + 1];
      EXPECT_EQ(predicted.phases[p].end, planned.of(kPhases[p]).end)
          << where << ", end of " << kPhaseNames[p + 1];
    }
    EXPECT_EQ(predicted.peak, planned.peak()) << where;
  }
}

inline Json staged(Json document, std::int64_t pipeline, const std::string& schedule,
                   std::int64_t chunks = 1, std::int64_t tensor = 1) {
  document["parallel"] = {{"pipeline", pipeline},
                          {"schedule", schedule},
                          {"virtual_pipeline", chunks},
                          {"tensor", tensor}};
  return document;
}

}  // namespace shardplan::validator::testing
