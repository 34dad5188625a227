// Small models, clusters and spaces that tests of the search can look at plan by plan.
#pragma once

#include <string_view>

#include "load/calibration.h"
#include "questions/search/axes.h"
#include "questions/search/search.h"
#include "support/plan_testing.h"

namespace shardplan {

inline constexpr const char* kSmallLlama =
    R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 8, "num_attention_heads": 16, "vocab_size": 32000,
    "max_position_embeddings": 8192})";

inline Model small_llama() {
  return model_of(kSmallLlama);
}

/// `nodes` of 4 GPUs of `gib` each with H100's rates, 64 GiB of host memory and an NVMe.
inline Plan small_plan(double gib, std::int64_t nodes = 1) {
  Plan plan = zero_plan(3, "bf16-master", 4);
  Cluster& c = plan.cluster;
  c.nodes = nodes;
  c.gpu.capacity = c.gpu.usable = Bytes(static_cast<std::int64_t>(gib * 1073741824.0));
  c.gpu.memory_bandwidth = 3.35e12;
  c.gpu.peak[PeakRate::bf16] = c.gpu.peak[PeakRate::fp16] = 989e12;
  c.gpu.peak[PeakRate::fp32] = 67e12;
  c.gpu.tdp_watts = 700;
  c.intra_node_bandwidth = 450e9;
  c.inter_node_bandwidth = 50e9;
  c.host_memory = Bytes(std::int64_t{64} << 30);
  c.nvme = Nvme{.capacity = Bytes(std::int64_t{1} << 40)};
  plan.workload.sequence_length = 1024;
  plan.gradient_clipping = 1;
  return plan;
}

/// A few values an axis: some thousand plans.
inline AxisValues small_axes() {
  AxisValues v;
  v.gpus = {1, 2, 4};
  v.micro_batches = {1, 4, 16};
  v.checkpointings = {{Checkpointing::none, {}}, {Checkpointing::full, {}}};
  v.reduce_buckets = {5'000'000, 100'000'000};
  v.prefetch_buckets = {5'000'000, 50'000'000};
  v.persistence_thresholds = {0, 1'000'000};
  v.tensors = v.ulysses = v.pipelines = {1};
  return v;
}

/// As Megatron-LM builds it.
inline Model small_megatron_llama() {
  return model_of(kSmallLlama, BuildOptions{.kernels = KernelSet::megatron});
}

inline Model small_megatron_mixtral() {
  return model_of(R"({"model_type": "mixtral", "hidden_size": 512, "intermediate_size": 1024,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
    "num_local_experts": 8, "vocab_size": 32000})",
                  BuildOptions{.kernels = KernelSet::megatron});
}

/// Two nodes of 4 GPUs.
inline Plan megatron_plan(double gib) {
  Plan plan = small_plan(gib, 2);
  plan.framework = {};
  plan.framework.kind = FrameworkKind::megatron;
  return plan;
}

/// Some hundred divisions of a small model over 8 GPUs.
inline AxisValues few_degrees() {
  AxisValues v;
  v.micro_batches = {1, 4};
  v.tensors = {1, 2, 4};
  v.contexts = {1, 2};
  v.pipelines = {1, 2, 4};
  v.virtual_pipelines = {1, 2};
  return v;
}

}  // namespace shardplan
