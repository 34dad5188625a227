// Jobs of layouts that ran under Megatron-LM in 2021 and 2022
// (data/published/parallel_layouts.json).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "json/document.h"

namespace shardplan::published_layouts {

struct Layout {
  std::int64_t layers = 0, hidden = 0, heads = 0, vocabulary = 51'200;
  std::int64_t tensor = 1, pipeline = 1, virtual_pipeline = 1;
  std::int64_t micro_batch = 1, global_batch = 1, gpus = 8;
  bool distributed_optimizer = false;
  std::string gradients = "fp16";

  /// What the papers divide time by: every product, recomputation included (SC21, appendix).
  double flops() const {
    const auto h = static_cast<double>(hidden), l = static_cast<double>(layers);
    const double s = 2048;
    return 96 * static_cast<double>(global_batch) * s * l * h * h *
           (1 + s / (6 * h) + static_cast<double>(vocabulary) / (16 * l * h));
  }
};

/// fp16, every block checkpointed, unfused attention, gradients reduced after the backward pass,
/// exchanges of input gradients waited for, gradients in 16 bits made and then added up, layers of
/// its own: as Megatron-LM ran in 2021.
inline Json job_of(const Layout& l) {
  Json job;
  job["model"] = {{"model_type", "gpt2"}, {"n_layer", l.layers},        {"n_embd", l.hidden},
                  {"n_head", l.heads},    {"vocab_size", l.vocabulary}, {"n_positions", 2048}};
  job["cluster"] = std::to_string(l.gpus / 8) + "x8xA100-SXM4-80GB";
  job["framework"] = {{"name", "megatron"},
                      {"distributed_optimizer", l.distributed_optimizer},
                      {"overlap_grad_reduce", false},
                      {"transformer_impl", "local"},
                      {"async_tensor_model_parallel_allreduce", false},
                      {"gradient_accumulation_fusion", false},
                      {"grad_reduce_dtype", l.gradients}};
  job["parallel"] = {{"tensor", l.tensor},
                     {"pipeline", l.pipeline},
                     {"virtual_pipeline", l.virtual_pipeline},
                     {"sequence_parallel", false}};
  if (l.layers % (l.pipeline * l.virtual_pipeline) != 0) job["parallel"]["balance"] = "parameters";
  const std::int64_t data = l.gpus / (l.tensor * l.pipeline);
  job["workload"] = {{"micro_batch", l.micro_batch},
                     {"sequence_length", 2048},
                     {"gradient_accumulation",
                      std::max<std::int64_t>(1, l.global_batch / (data * l.micro_batch))}};
  job["precision"] = "fp16-master";
  job["checkpointing"] = "full";
  job["attention"] = "eager";
  return job;
}

}  // namespace shardplan::published_layouts
