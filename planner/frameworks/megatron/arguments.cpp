// megatron/training/arguments.py and the dataclasses that it makes arguments of, as of d98e8a6.
#include "frameworks/megatron/arguments.h"

#include <fmt/format.h>

#include "frameworks/megatron/saved_inputs.h"
#include "optimizers/description.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

using Lines = std::vector<std::string>;

std::string_view schedule_note(const Plan& plan) {
  return plan.parallel.pipeline > 1 && plan.parallel.schedule == PipelineSchedule::gpipe
             ? "# the job asks for gpipe: Megatron-LM has 1f1b only, which takes less memory"
             : "";
}

/// Blocks of each chunk, "t" each, and layers of further tokens, "m" each: "Ett|ttt|ttmL".
std::string layout(const std::vector<std::int64_t>& blocks, std::int64_t further) {
  std::string text = "E";
  for (std::size_t c = 0; c < blocks.size(); ++c)
    text += (c > 0 ? "|" : "") + std::string(static_cast<std::size_t>(blocks[c]), 't');
  return text + std::string(static_cast<std::size_t>(further), 'm') + "L";
}

void add_context(Lines& lines, const Parallel& p) {
  const std::int64_t pieces = p.context * p.sequence;
  if (pieces == 1) return;
  lines.push_back(fmt::format("--context-parallel-size {}", pieces));
  if (p.sequence == 1) {
    lines.emplace_back("--cp-comm-type p2p");
  } else if (p.context == 1) {
    lines.emplace_back("--cp-comm-type a2a");
  } else {
    lines.emplace_back("--cp-comm-type a2a+p2p");
    lines.push_back(
        fmt::format("--hierarchical-context-parallel-sizes {} {}", p.sequence, p.context));
  }
}

void add_pipeline(Lines& lines, const Plan& plan) {
  const Parallel& p = plan.parallel;
  if (p.pipeline == 1) return;
  lines.push_back(fmt::format("--pipeline-model-parallel-size {}", p.pipeline));
  if (!schedule_note(plan).empty()) lines.emplace_back(schedule_note(plan));
  if (!p.stage_layers.empty()) {
    lines.push_back(fmt::format("--pipeline-model-parallel-layout '{}'",
                                layout(p.stage_layers, plan.framework.megatron.mtp_num_layers)));
    return;
  }
  if (p.virtual_pipeline > 1)
    lines.push_back(fmt::format("--num-virtual-stages-per-pipeline-rank {}", p.virtual_pipeline));
  if (p.balance != StageBalance::blocks_and_ends) return;
  lines.emplace_back("--account-for-embedding-in-pipeline-split");
  lines.emplace_back("--account-for-loss-in-pipeline-split");
}

void add_degrees(Lines& lines, const Plan& plan, std::int64_t experts) {
  const Parallel& p = plan.parallel;
  if (!plan.framework.megatron.transformer_engine) lines.emplace_back("--transformer-impl local");
  lines.push_back(fmt::format("--tensor-model-parallel-size {}", p.tensor));
  if (p.sequence_parallel) lines.emplace_back("--sequence-parallel");
  if (p.sequence_parallel && plan.framework.megatron.tp_comm_overlap)
    lines.emplace_back("--tp-comm-overlap");
  add_context(lines, p);
  add_pipeline(lines, plan);
  if (const std::int64_t further = plan.framework.megatron.mtp_num_layers; further > 0)
    lines.push_back(fmt::format("--mtp-num-layers {}", further));
  if (experts == 0) return;
  lines.push_back(fmt::format("--expert-model-parallel-size {}", p.expert));
  lines.push_back(fmt::format("--expert-tensor-parallel-size {}", p.expert_tensor));
}

void add_optimizer(Lines& lines, const Plan& plan) {
  const MegatronOptions& m = plan.framework.megatron;
  lines.push_back(fmt::format("--optimizer {}", plan.optimizer.kind->megatron));
  lines.push_back(fmt::format("--clip-grad {}", plan.gradient_clipping));
  if (m.distributed_optimizer) lines.emplace_back("--use-distributed-optimizer");
  if (m.shard_gradients) {
    lines.emplace_back("--use-megatron-fsdp");
    lines.push_back(fmt::format("--data-parallel-sharding-strategy optim_grads{}",
                                m.shard_parameters ? "_params" : ""));
    lines.emplace_back("--ckpt-format fsdp_dtensor");
  }
  if (m.overlap_grad_reduce) lines.emplace_back("--overlap-grad-reduce");
  if (m.overlap_param_gather) lines.emplace_back("--overlap-param-gather");
  if (m.bucket_size) lines.push_back(fmt::format("--ddp-bucket-size {}", *m.bucket_size));
  if (m.pad_buckets) lines.emplace_back("--ddp-pad-buckets-for-high-nccl-busbw");
  if (!m.gradient_accumulation_fusion) lines.emplace_back("--no-gradient-accumulation-fusion");
}

void add_types(Lines& lines, const Plan& plan) {
  const Precision& p = plan.precision;
  const DType gradients = plan.framework.megatron.gradients;
  if (p.params == DType::bf16) lines.emplace_back("--bf16");
  if (p.params == DType::f16) lines.emplace_back("--fp16");
  if (p.params != DType::f32)
    lines.emplace_back(gradients == DType::f32 ? "--accumulate-allreduce-grads-in-fp32"
                                               : "--grad-reduce-in-bf16");
  if (const std::string_view recipe = recipe_of(p.linear).megatron; !recipe.empty()) {
    lines.emplace_back("--fp8-format hybrid");
    lines.push_back(fmt::format("--fp8-recipe {}", recipe));
  }
  if (plan.framework.megatron.cross_entropy_fusion) {
    lines.emplace_back("--cross-entropy-loss-fusion");
    lines.emplace_back("--cross-entropy-fusion-impl te");
  }
  lines.push_back(fmt::format("--attention-backend {}", plan.attention == AttentionKind::eager
                                                            ? "unfused"
                                                        : plan.calls_flash_attn() ? "flash"
                                                                                  : "auto"));
}

void add_batch(Lines& lines, const Plan& plan) {
  const Workload& w = plan.workload;
  lines.push_back(fmt::format("--seq-length {}", w.sequence_length));
  lines.push_back(fmt::format("--micro-batch-size {}", w.micro_batch));
  lines.push_back(fmt::format("--global-batch-size {}",
                              checked_mul(plan.samples_at_once(), w.gradient_accumulation)));
}

void add_recomputation(Lines& lines, const Plan& plan) {
  const Checkpointing how = plan.checkpointing;
  if (recomputes_whole_layers(plan)) {
    const bool some = plan.keeps_some_blocks();
    lines.emplace_back("--recompute-granularity full");
    lines.push_back(fmt::format("--recompute-method {}", some ? "block" : "uniform"));
    lines.push_back(
        fmt::format("--recompute-num-layers {}", some ? plan.checkpoint_share.count : 1));
    if (distributes_saved_activations(plan)) lines.emplace_back("--distribute-saved-activations");
  }
  if (how == Checkpointing::selective) {
    lines.emplace_back("--recompute-granularity selective");
    lines.emplace_back("--recompute-modules core_attn");
  }
}

void add_sent_modules(Lines& lines, const Plan& plan) {
  const MegatronOptions& m = plan.framework.megatron;
  if (m.offload_modules.empty()) return;
  lines.emplace_back("--fine-grained-activation-offloading");
  lines.push_back(fmt::format("--offload-modules {}", fmt::join(m.offload_modules, " ")));
  lines.push_back(fmt::format("--min-offloaded-tensor-size {}", m.min_offloaded_tensor_size));
}

/// The network of Llama and its relatives, as the model's tensors say it.
class Network {
 public:
  explicit Network(const Model& model) : model_(model), facts_(model.facts) {}

  bool is_known() const {
    const std::string& type = facts_.model_type;
    return type == "llama" || type == "mistral" || type == "mixtral" || type == "qwen2";
  }

  Lines arguments() const {
    Lines lines{fmt::format("--num-layers {}", facts_.layers),
                fmt::format("--hidden-size {}", facts_.hidden),
                fmt::format("--ffn-hidden-size {}", extent("down_proj", -1)),
                fmt::format("--num-attention-heads {}", facts_.attention_heads)};
    if (facts_.key_value_heads != facts_.attention_heads) {
      lines.emplace_back("--group-query-attention");
      lines.push_back(fmt::format("--num-query-groups {}", facts_.key_value_heads));
    }
    lines.push_back(
        fmt::format("--kv-channels {}", extent("q_proj.weight", 0) / facts_.attention_heads));
    lines.push_back(fmt::format("--max-position-embeddings {}", facts_.max_positions));
    for (const char* same :
         {"--normalization RMSNorm", "--swiglu", "--disable-bias-linear",
          "--position-embedding-type rope", "--attention-dropout 0", "--hidden-dropout 0"})
      lines.emplace_back(same);
    if (extent("q_proj.bias", 0) > 0) lines.emplace_back("--add-qkv-bias");
    if (extent("lm_head.weight", 0) > 0)
      lines.emplace_back("--untie-embeddings-and-output-weights");
    if (const std::int64_t experts = expert_count(model_); experts > 0) {
      lines.push_back(fmt::format("--num-experts {}", experts));
      lines.push_back(fmt::format("--moe-router-topk {}", experts_of_a_token()));
      lines.emplace_back("--moe-grouped-gemm");
      lines.emplace_back("--moe-token-dispatcher-type alltoall");
    }
    return lines;
  }

 private:
  /// What a token's products take, over what one expert's would.
  std::int64_t experts_of_a_token() const {
    for (const Segment& segment : model_.segments)
      for (const Op& op : segment.graph.ops()) {
        if (op.kind != OpKind::grouped_linear) continue;
        const Parameter& weight = model_.parameters[static_cast<std::size_t>(op.weight)];
        return op.work.per / (weight.numel / weight.shape.front());
      }
    return 0;
  }

  /// Of the first parameter with such a name: its dimension `at`, -1 for the last; 0 without one.
  std::int64_t extent(std::string_view name, int at) const {
    for (const Parameter& p : model_.parameters)
      if (p.name.find(name) != std::string::npos)
        return at < 0 ? p.shape.back() : p.shape[static_cast<std::size_t>(at)];
    return 0;
  }

  const Model& model_;
  const ModelFacts& facts_;
};

std::string block(std::string_view name, std::string_view comment, const Lines& lines) {
  std::string text = fmt::format("{}=( # {}\n", name, comment);
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + ")\n";
}

}  // namespace

std::string megatron_arguments(const Job& job) {
  const Plan& plan = job.plan;
  const Network network(job.model);
  const std::int64_t experts = expert_count(job.model);
  Lines lines;
  add_degrees(lines, plan, experts);
  add_batch(lines, plan);
  add_types(lines, plan);
  add_recomputation(lines, plan);
  add_sent_modules(lines, plan);
  add_optimizer(lines, plan);
  const std::string& name = job.model.facts.name;
  std::string text = network.is_known()
                         ? block("network",
                                 name +
                                     "; its vocabulary comes with the tokenizer, its rotary base "
                                     "and epsilon from its checkpoint",
                                 network.arguments())
                         : block("network", name + ": yours to add", {});
  text += block("arguments", "the plan", lines);
  // megatron/training/arguments.py: before Blackwell, to order communication and computation.
  text += plan.framework.megatron.shard_gradients
              ? "unset CUDA_DEVICE_MAX_CONNECTIONS # Megatron FSDP wants more than 1\n"
              : "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  // arguments.py: with Transformer Engine 2.10 and later, so that no weights are sent.
  if (!plan.framework.megatron.offload_modules.empty()) text += "export NVTE_CPU_OFFLOAD_V1=1\n";
  return text;
}

}  // namespace shardplan
