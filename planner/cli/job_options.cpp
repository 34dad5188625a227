#include "cli/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/lists.h"
#include "load/hardware.h"

namespace shardplan::cli {
namespace {

struct Field {
  const char* flag;
  const char* pointer;
  char kind;  ///< t text, n number, b boolean, l list
  const char* help;
};

constexpr Field kFields[] = {
    {"--model", "/model", 't', "catalogue name, config.json or a size such as 7B"},
    {"--cluster", "/cluster", 't', "4xA100-40GB, 2x8xH100, 4x40GB, an instance name"},
    {"--framework", "/framework/name", 't', "single, ddp, fsdp2 or deepspeed"},
    {"--zero-stage", "/framework/zero_stage", 'n', "DeepSpeed: 0, 1, 2 or 3"},
    {"--ds-config", "/framework/ds_config", 't', "DeepSpeed: the path of a ds_config.json"},
    {"--deepspeed-version", "/framework/version", 't', "DeepSpeed: for example 0.19.6"},
    {"--auto", "/framework/auto", 't',
     "DeepSpeed: who resolves \"auto\": hf_trainer, accelerate or nobody"},
    {"--offload-optimizer", "/framework/offload_optimizer", 't', "DeepSpeed: none, cpu or nvme"},
    {"--offload-param", "/framework/offload_param", 't', "DeepSpeed: none, cpu or nvme"},
    {"--gradient-as-bucket-view", "/framework/gradient_as_bucket_view", 'b',
     "DDP: gradients are views into the buckets"},
    {"--zero-redundancy-optimizer", "/framework/zero_redundancy_optimizer", 'b',
     "DDP: split optimizer states over the GPUs"},
    {"--reshard-after-forward", "/framework/reshard_after_forward", 'b',
     "FSDP2: free a block's parameters after its forward pass"},
    {"--reduce-dtype", "/framework/reduce_dtype", 't', "FSDP2: fp32 or bf16"},
    {"--cpu-offload", "/framework/cpu_offload", 'b', "FSDP2: shards and states on the host"},
    {"--micro-batch", "/workload/micro_batch", 'n', "samples a GPU takes at once"},
    {"--sequence-length", "/workload/sequence_length", 'n', "tokens of a sample"},
    {"--target-length", "/workload/target_length", 'n', "decoder tokens (encoder-decoder models)"},
    {"--gradient-accumulation", "/workload/gradient_accumulation", 'n', "micro-batches a step"},
    {"--method", "/workload/method", 't', "full or lora"},
    {"--lora-rank", "/workload/lora/rank", 'n', "LoRA: rank of the adapters"},
    {"--lora-targets", "/workload/lora/targets", 'l', "LoRA: modules, such as q_proj,v_proj"},
    {"--lora-quantization", "/workload/lora/quantization", 't',
     "LoRA: the base's weights as nf4 or nf4_double"},
    {"--kind", "/workload/kind", 't', "train, the only kind so far"},
    {"--precision", "/precision", 't',
     "bf16-master, bf16-autocast, bf16-pure, fp32, and fp16- likewise"},
    {"--optimizer", "/optimizer/name", 't', "adamw, sgd, lion, adafactor, ..."},
    {"--optimizer-implementation", "/optimizer/implementation", 't', "fused, foreach or for-loop"},
    {"--momentum", "/optimizer/momentum", 'n', "SGD's momentum"},
    {"--attention", "/attention", 't', "sdpa (fused) or eager"},
    {"--checkpointing", "/checkpointing", 't', "none, selective, or full: every block"},
    {"--loss", "/loss", 't', "cross_entropy, or fused_linear: never the whole logits"},
    {"--gradient-clipping", "/gradient_clipping", 'n', "largest norm of the gradients; 0 is off"},
    {"--host-memory-bytes", "/cluster/host_memory_bytes", 'n', "host memory of a node"},
    {"--nvme-bytes", "/cluster/nvme/bytes", 'n', "NVMe of a node"},
};

Json number_of(const std::string& flag, const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  if (!value.is_number())
    throw InputError({.file = "<command line>",
                      .key = flag,
                      .message = fmt::format("found '{}'", text),
                      .expected = "a number"});
  return value;
}

Json boolean_of(const std::string& flag, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw InputError({.file = "<command line>",
                    .key = flag,
                    .message = fmt::format("found '{}'", text),
                    .expected = "true or false"});
}

const char* type_name(JobOptions::Kind kind) {
  switch (kind) {
    case JobOptions::Kind::number:
      return "NUMBER";
    case JobOptions::Kind::boolean:
      return "true|false";
    case JobOptions::Kind::list:
      return "LIST";
    case JobOptions::Kind::text:
      break;
  }
  return "TEXT";
}

/// "framework": "ddp" and "cluster": "4xH100" become objects when a flag sets one of their fields.
void widen(Json& job, const std::string& parent, const char* key) {
  const auto it = job.find(parent);
  if (it != job.end() && it->is_string()) *it = Json{{key, *it}};
}

}  // namespace

void JobOptions::add_flags(CLI::App& command) {
  flags_.reserve(std::size(kFields));
  for (const Field& field : kFields) {
    Flag flag;
    flag.pointer = field.pointer;
    flag.kind = field.kind == 'n'   ? Kind::number
                : field.kind == 'b' ? Kind::boolean
                : field.kind == 'l' ? Kind::list
                                    : Kind::text;
    flags_.push_back(std::move(flag));
    flags_.back().option = command.add_option(field.flag, flags_.back().value, field.help)
                               ->group("Job")
                               ->type_name(type_name(flags_.back().kind));
  }
}

bool JobOptions::given(std::string_view flag) const {
  return std::any_of(flags_.begin(), flags_.end(), [&](const Flag& f) {
    return f.option->count() > 0 && f.option->get_name() == flag;
  });
}

Json JobOptions::merged(const Json& base) const {
  Json job = base;
  if (!file.empty()) job.merge_patch(read_json_file(file));
  for (const Flag& flag : flags_) {
    if (flag.option->count() == 0) continue;
    const std::string name = flag.option->get_name();
    Json value = flag.value;
    if (flag.kind == Kind::number) value = number_of(name, flag.value);
    if (flag.kind == Kind::boolean) value = boolean_of(name, flag.value);
    if (flag.kind == Kind::list) {
      value = split_list(flag.value);
    }
    if (flag.pointer.rfind("/framework/", 0) == 0) widen(job, "framework", "name");
    if (flag.pointer.rfind("/optimizer/", 0) == 0) widen(job, "optimizer", "name");
    if (flag.pointer.rfind("/cluster/", 0) == 0) widen(job, "cluster", "name");
    job[Json::json_pointer(flag.pointer)] = std::move(value);
  }
  return job;
}

Job load(const Json& job, const std::string& file) {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  context.directory = file.empty() ? "" : std::filesystem::path(file).parent_path().string();
  return load_job(job, file.empty() ? "<command line>" : file, context);
}

}  // namespace shardplan::cli
