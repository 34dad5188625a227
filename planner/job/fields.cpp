#include "job/fields.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace shardplan {
namespace {

using Kind = JobField::Kind;

constexpr std::array kFields{
    JobField{"--model", "/model", Kind::text, "catalogue name, config.json or a size such as 7B"},
    JobField{"--cluster", "/cluster", Kind::text,
             "4xA100-40GB, 2x8xH100, 4x40GB, an instance name"},
    JobField{"--framework", "/framework/name", Kind::text,
             "single, ddp, fsdp2, deepspeed or megatron"},
    JobField{"--zero-stage", "/framework/zero_stage", Kind::number, "DeepSpeed: 0, 1, 2 or 3"},
    JobField{"--ds-config", "/framework/ds_config", Kind::text,
             "DeepSpeed: the path of a ds_config.json"},
    JobField{"--deepspeed-version", "/framework/version", Kind::text,
             "DeepSpeed: for example 0.19.6"},
    JobField{"--auto", "/framework/auto", Kind::text,
             "DeepSpeed: who resolves \"auto\": hf_trainer, accelerate or nobody"},
    JobField{"--offload-optimizer", "/framework/offload_optimizer", Kind::text,
             "DeepSpeed: none, cpu or nvme"},
    JobField{"--offload-param", "/framework/offload_param", Kind::text,
             "DeepSpeed: none, cpu or nvme"},
    JobField{"--checkpoint-function", "/framework/checkpoint_function", Kind::text,
             "DeepSpeed: torch or deepspeed, which function checkpoints blocks"},
    JobField{"--gradient-as-bucket-view", "/framework/gradient_as_bucket_view", Kind::boolean,
             "DDP: gradients are views into the buckets"},
    JobField{"--zero-redundancy-optimizer", "/framework/zero_redundancy_optimizer", Kind::boolean,
             "DDP: split optimizer states over the GPUs"},
    JobField{"--reshard-after-forward", "/framework/reshard_after_forward", Kind::boolean,
             "FSDP2: free a block's parameters after its forward pass"},
    JobField{"--reduce-dtype", "/framework/reduce_dtype", Kind::text, "FSDP2: fp32, bf16 or fp16"},
    JobField{"--cpu-offload", "/framework/cpu_offload", Kind::boolean,
             "FSDP2: shards and states on the host"},
    JobField{"--hybrid-shard-size", "/framework/hybrid_shard_size", Kind::number,
             "FSDP2: GPUs that divide one copy of the states"},
    JobField{"--distributed-optimizer", "/framework/distributed_optimizer", Kind::boolean,
             "Megatron: divide master weights and states over data-parallel GPUs"},
    JobField{"--shard-gradients", "/framework/shard_gradients", Kind::boolean,
             "Megatron: divide gradients too, reducing them after every micro-batch"},
    JobField{"--overlap-grad-reduce", "/framework/overlap_grad_reduce", Kind::boolean,
             "Megatron: reduce gradients beside the backward pass"},
    JobField{"--overlap-param-gather", "/framework/overlap_param_gather", Kind::boolean,
             "Megatron: gather parameters beside the next forward pass"},
    JobField{"--grad-reduce-dtype", "/framework/grad_reduce_dtype", Kind::text,
             "Megatron: of the gradient buffers: fp32, bf16 or fp16"},
    JobField{"--bucket-size", "/framework/bucket_size", Kind::number,
             "Megatron: elements of a bucket of gradients"},
    JobField{"--pad-buckets", "/framework/pad_buckets", Kind::boolean,
             "Megatron: buckets as multiples of 65,536 elements"},
    JobField{"--cross-entropy-fusion", "/framework/cross_entropy_fusion", Kind::boolean,
             "Megatron: loss in place of the logits (Transformer Engine)"},
    JobField{"--gradient-accumulation-fusion", "/framework/gradient_accumulation_fusion",
             Kind::boolean, "Megatron: products add their gradients to the buffers"},
    JobField{"--async-tensor-model-parallel-allreduce",
             "/framework/async_tensor_model_parallel_allreduce", Kind::boolean,
             "Megatron: exchange input gradients beside the products of weight gradients"},
    JobField{"--transformer-impl", "/framework/transformer_impl", Kind::text,
             "Megatron: transformer_engine, or local for Megatron-LM's own layers"},
    JobField{"--tp-comm-overlap", "/framework/tp_comm_overlap", Kind::boolean,
             "Megatron: tensor-parallel exchanges in chunks beside their products"},
    JobField{"--distribute-saved-activations", "/framework/distribute_saved_activations",
             Kind::boolean,
             "Megatron: recomputed layers' inputs divided over tensor-parallel GPUs"},
    JobField{"--micro-batch", "/workload/micro_batch", Kind::number, "samples a GPU takes at once"},
    JobField{"--sequence-length", "/workload/sequence_length", Kind::number, "tokens of a sample"},
    JobField{"--target-length", "/workload/target_length", Kind::number,
             "decoder tokens (encoder-decoder models)"},
    JobField{"--gradient-accumulation", "/workload/gradient_accumulation", Kind::number,
             "micro-batches a step"},
    JobField{"--method", "/workload/method", Kind::text, "full or lora"},
    JobField{"--lora-rank", "/workload/lora/rank", Kind::number, "LoRA: rank of the adapters"},
    JobField{"--lora-targets", "/workload/lora/targets", Kind::list,
             "LoRA: modules, such as q_proj,v_proj"},
    JobField{"--lora-quantization", "/workload/lora/quantization", Kind::text,
             "LoRA: the base's weights as nf4 or nf4_double"},
    JobField{"--kind", "/workload/kind", Kind::text, "train, inference or rlhf"},
    JobField{"--batch", "/workload/batch", Kind::number, "inference: sequences at once"},
    JobField{"--prompt-length", "/workload/prompt_length", Kind::number,
             "inference: tokens of a prompt"},
    JobField{"--new-tokens", "/workload/new_tokens", Kind::number,
             "inference: tokens to generate for each prompt"},
    JobField{"--quantization", "/workload/quantization", Kind::text,
             "inference: weights as none, fp8, int8, nf4, nf4_double, gptq or awq"},
    JobField{"--kv-cache-dtype", "/workload/kv_cache_dtype", Kind::text, "inference: auto or fp8"},
    JobField{"--data-parallel", "/parallel/data", Kind::number,
             "GPUs with samples of their own: what the other degrees leave"},
    JobField{"--tensor-parallel", "/parallel/tensor", Kind::number, "GPUs that share each layer"},
    JobField{"--pipeline-parallel", "/parallel/pipeline", Kind::number, "stages of layers"},
    JobField{"--virtual-pipeline", "/parallel/virtual_pipeline", Kind::number,
             "chunks of layers on each stage"},
    JobField{"--ulysses", "/parallel/sequence", Kind::number,
             "GPUs that share a sequence, exchanging heads (Ulysses)"},
    JobField{"--context-parallel", "/parallel/context", Kind::number,
             "GPUs that share a sequence, passing keys and values round (ring)"},
    JobField{"--expert-parallel", "/parallel/expert", Kind::number,
             "GPUs that share the experts of a layer"},
    JobField{"--expert-tensor-parallel", "/parallel/expert_tensor", Kind::number,
             "GPUs that share one expert"},
    JobField{"--sequence-parallel", "/parallel/sequence_parallel", Kind::boolean,
             "tensor-parallel GPUs divide along tokens what each would keep (Megatron)"},
    JobField{"--pipeline-schedule", "/parallel/schedule", Kind::text, "gpipe, 1f1b or interleaved"},
    JobField{"--stage-balance", "/parallel/balance", Kind::text,
             "blocks, blocks_and_ends or parameters"},
    JobField{"--stage-layers", "/parallel/stage_layers", Kind::numbers,
             "blocks of each stage, such as 7,8,8,7"},
    JobField{"--precision", "/precision", Kind::text,
             "bf16-master, bf16-autocast, bf16-pure, fp32, and fp16- likewise"},
    JobField{"--optimizer", "/optimizer/name", Kind::text, "adamw, sgd, lion, adafactor, ..."},
    JobField{"--optimizer-implementation", "/optimizer/implementation", Kind::text,
             "fused, foreach or for-loop"},
    JobField{"--momentum", "/optimizer/momentum", Kind::number, "SGD's momentum"},
    JobField{"--attention", "/attention", Kind::text, "sdpa (fused) or eager"},
    JobField{"--checkpointing", "/checkpointing", Kind::text,
             "none, selective, or full: every block"},
    JobField{"--loss", "/loss", Kind::text,
             "cross_entropy, or fused_linear: never the whole logits"},
    JobField{"--gradient-clipping", "/gradient_clipping", Kind::number,
             "largest norm of the gradients; 0 is off"},
    JobField{"--launch-blocking", "/launch_blocking", Kind::boolean,
             "CUDA_LAUNCH_BLOCKING=1: the host waits for every kernel"},
    JobField{"--host-memory-bytes", "/cluster/host_memory_bytes", Kind::number,
             "host memory of a node"},
    JobField{"--nvme-bytes", "/cluster/nvme/bytes", Kind::number, "NVMe of a node"},
};

/// The key of a field's parent object that a bare text stands for: "name".
void widen(Json& job, const std::string& parent) {
  const auto it = job.find(parent);
  if (it != job.end() && it->is_string()) *it = Json{{"name", *it}};
}

/// "/framework/name" of {"framework": "ddp"} is the text itself.
const Json* find(const Json& job, std::string_view pointer) {
  const Json::json_pointer path{std::string(pointer)};
  if (job.contains(path)) return &job.at(path);
  if (path.back() != "name") return nullptr;
  const auto parent = path.parent_pointer();
  return !parent.empty() && job.contains(parent) && job.at(parent).is_string() ? &job.at(parent)
                                                                               : nullptr;
}

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string argument(const Json& value) {
  if (value.is_string()) return shell_quoted(value.get<std::string>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value)
    list += (list.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
  return shell_quoted(list);
}

bool is_scalar_list(const Json& value) {
  for (const Json& item : value)
    if (item.is_structured()) return false;
  return true;
}

/// Takes away what the flags of `command` say already, and objects that are empty then.
bool nothing_left(Json rest, const std::set<std::string>& said) {
  for (const std::string& pointer : said) set_field(rest, pointer, nullptr);
  for (const auto* key : {"schema", "name", "comment", "description"}) rest.erase(key);
  const Json flat = rest.flatten();
  for (const auto& [pointer, value] : flat.items())
    if (!value.is_null() && !(value.is_structured() && value.empty())) return false;
  return true;
}

}  // namespace

std::span<const JobField> job_fields() {
  return kFields;
}

void set_field(Json& job, std::string_view pointer, Json value) {
  const Json::json_pointer path{std::string(pointer)};
  const std::string parent = std::string(pointer.substr(1, pointer.find('/', 1) - 1));
  if (!value.is_null()) {
    if (pointer.find('/', 1) != std::string_view::npos) widen(job, parent);
    job[path] = std::move(value);
    return;
  }
  if (path.parent_pointer().empty()) {
    job.erase(parent);
  } else if (job.contains(path)) {
    job.at(path.parent_pointer()).erase(path.back());
  } else if (find(job, pointer) != nullptr) {
    job.erase(parent);
  }
}

std::optional<Json> field_of(const Json& job, std::string_view pointer) {
  const Json* value = find(job, pointer);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return *value;
}

std::string command_line(const Json& job, const std::string& file) {
  std::string command = "shardplan estimate";
  if (!file.empty()) return command + " " + shell_quoted(file);
  std::set<std::string> said;
  for (const JobField& field : kFields) {
    const auto value = field_of(job, field.pointer);
    if (!value || value->is_object() || (value->is_array() && !is_scalar_list(*value))) continue;
    command += fmt::format(" {} {}", field.flag, argument(*value));
    said.emplace(field.pointer);
  }
  return nothing_left(job, said) ? command : "shardplan estimate job.json";
}

}  // namespace shardplan
