// Options of Megatron-LM (megatron.core), with the names of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace shardplan {

struct MegatronOptions {
  /// --transformer-impl transformer_engine; without, local: layers of Megatron-LM's own, all that
  /// it had before 2023.
  bool transformer_engine = true;
  /// --use-distributed-optimizer: master weights and states divided over data-parallel ranks.
  bool distributed_optimizer = true;
  /// --num-distributed-optimizer-instances: groups of data-parallel ranks that each divide them
  /// all; gradients are reduced within one, then summed over all.
  std::int64_t distributed_optimizer_instances = 1;
  /// --data-parallel-sharding-strategy optim_grads (Megatron FSDP): gradients too, reduced after
  /// every micro-batch.
  bool shard_gradients = false;
  /// The same, optim_grads_params: parameters as well, gathered for every pass.
  bool shard_parameters = false;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;  ///< needs both of the others
  /// Of the gradient buffers: --accumulate-allreduce-grads-in-fp32, which bf16 implies.
  DType gradients = DType::f32;
  std::optional<std::int64_t> bucket_size;  ///< elements; absent: the larger of 40 M and 1 M a rank
  bool pad_buckets = false;                 ///< --ddp-pad-buckets-for-high-nccl-busbw
  /// Products add their weights' gradients to the buffers themselves; without
  /// (--no-gradient-accumulation-fusion) each gradient is made and then added.
  bool gradient_accumulation_fusion = true;
  /// Exchanges of a column-cut layer's input gradient run beside the products of its weights'
  /// gradients; Megatron-LM up to 2.6 waited for them.
  bool async_tensor_model_parallel_allreduce = true;
  /// --tp-comm-overlap: Transformer Engine's userbuffers cut the other exchanges of sequence
  /// parallelism into chunks that run beside the products they belong to.
  bool tp_comm_overlap = false;
  /// --cross-entropy-loss-fusion with Transformer Engine's kernel: no fp32 copy of the logits.
  bool cross_entropy_fusion = false;
  /// --distribute-saved-activations: of the saved input of a recomputed layer each tensor-parallel
  /// rank keeps a part.
  bool distribute_saved_activations = false;
  /// --mtp-num-layers: layers behind the others that predict further tokens, each with logits and a
  /// loss of its own.
  std::int64_t mtp_num_layers = 0;
  /// --fine-grained-activation-offloading with --offload-modules: what autograd keeps inside of
  /// these waits on the host, but for tensors of fewer elements.
  std::vector<std::string> offload_modules;
  std::int64_t min_offloaded_tensor_size = 1 << 20;
};

}  // namespace shardplan
