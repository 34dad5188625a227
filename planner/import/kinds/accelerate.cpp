// accelerate's configuration file (1.15): commands/config and commands/launch.py.
#include <fmt/format.h>

#include <array>

#include "base/nearest.h"
#include "import/fsdp.h"
#include "import/kinds/kind.h"
#include "import/vocabulary.h"
#include "load/accelerate.h"

namespace shardplan::importing::accelerate {
namespace {

bool is_accelerate(const Document& d) {
  return !d.is_command() && (has_any(d, {"distributed_type", "compute_environment"}) ||
                             has_all(d, {"num_processes", "num_machines"}));
}

void read_distribution(Key& key) {
  const std::string type = key.text();
  if (type == "FSDP" || type == "DEEPSPEED") return key.took("with its own block of options");
  if (type == "MULTI_GPU") return key.take("/framework", Json{{"name", "ddp"}});
  if (type == "NO" || type == "false") {
    key.recipe().one_process = true;
    return key.took("one process");
  }
  if (type == "MEGATRON_LM")
    key.refuse("Megatron-LM under accelerate is not read", "Megatron-LM's own arguments");
  key.refuse(fmt::format("'{}' is not estimated", type), "NO, MULTI_GPU, FSDP or DEEPSPEED");
}

bool runs(Key& key, std::string_view type) {
  const Json* said = key.other("distributed_type");
  return said != nullptr && *said == type;
}

void read_fsdp_options(Key& key) {
  if (!runs(key, "FSDP")) return key.ignore("distributed_type is not FSDP");
  read_fsdp_block(key, key.value(), "", kAccelerateFsdp);
}

/// The plugin's own ds_config, or the file that it names.
void read_deepspeed_options(Key& key) {
  if (!runs(key, "DEEPSPEED")) return key.ignore("distributed_type is not DEEPSPEED");
  if (!key.value().is_object()) key.refuse("is no mapping", "options by name");
  const Json* file = value_below(key.value(), "deepspeed_config_file");
  if (file != nullptr && file->is_string()) {
    const std::string path = resolved_path(file->get<std::string>(), key.document().file);
    if (path.empty())
      key.refuse(fmt::format("no file '{}'", file->get<std::string>()),
                 "deepspeed_config_file beside this one, or in the working directory");
    return attach_ds_config(key, ds_config_of_trainer(path), path);
  }
  AccelerateConfig config;
  config.document = key.document().value;
  const Json* precision = key.other("mixed_precision");
  if (precision != nullptr && precision->is_string()) config.mixed_precision = *precision;
  attach_ds_config(key, plugin_ds_config(config), "");
}

void read_processes(Key& key) {
  key.recipe().processes = key.integer(1);
  key.took("GPUs in all");
}

void read_machines(Key& key) {
  key.recipe().machines = key.integer(1);
  key.took("machines");
}

void read_cpu(Key& key) {
  if (key.flag()) key.refuse("training on CPUs is not estimated", "use_cpu: false");
  key.ignore("GPUs");
}

void read_dynamo(Key& key) {
  const Json* backend = value_below(key.value(), "dynamo_backend");
  if (backend == nullptr || *backend == "NO" || *backend == "no") return key.ignore("not compiled");
  key.take("/compile", true);
}

void read_degree(Key& key) {
  if (key.integer(1) == 1) return key.ignore("1: not divided");
  key.take(key.integer(1));
}

std::int64_t mesh_size(const Document& d, std::string_view name) {
  const Json* size =
      value_below(d.value, fmt::format("parallelism_config.parallelism_config_{}", name));
  return size != nullptr && size->is_number_integer() ? size->get<std::int64_t>() : 1;
}

/// FSDP2's copies of the states; who divides one are the GPUs of the shard and context dimensions.
void read_copies(Key& key) {
  if (key.integer(1) == 1) return key.ignore("one copy of the states");
  if (mesh_size(key.document(), "dp_shard_size") == 1)
    key.refuse("copies of states that nobody divides are DDP's", "distributed_type: MULTI_GPU");
  key.took("framework.hybrid_shard_size");
}

void read_rotation(Key& key) {
  const std::string how = normalized(key.text());
  if (how != "allgather" && how != "alltoall")
    key.refuse(fmt::format("found '{}'", how), "allgather or alltoall");
  key.took("framework.context_rotation");
}

/// What the mesh says of FSDP2, once its own block has been read.
void take_mesh(const Document& d, Recipe& recipe) {
  const Json* name = recipe.find("/framework/name");
  if (name == nullptr || *name != "fsdp2") return;
  const Origin origin{d.file, "parallelism_config"};
  if (mesh_size(d, "dp_replicate_size") > 1)
    recipe.set("/framework/hybrid_shard_size",
               mesh_size(d, "dp_shard_size") * mesh_size(d, "cp_size"), origin);
  const Json* rotation =
      value_below(d.value, "parallelism_config.parallelism_config_cp_comm_strategy");
  if (rotation != nullptr && *rotation == "alltoall")
    recipe.set("/framework/context_rotation", "alltoall", origin);
}

bool in_fp8(Key& key) {
  const Json* precision = key.other("mixed_precision");
  return precision != nullptr && (*precision == "fp8" || *precision == "FP8");
}

void read_fp8(Key& key) {
  if (!in_fp8(key)) return key.ignore("mixed_precision is not fp8");
  key.took("taken with mixed_precision");
}

/// accelerator.py: bf16 autocast, and linears of Transformer Engine, which is taken where it is
/// there, or of torchao.
void read_8_bits(Key& key) {
  const Json* backend = key.other("fp8_config.backend");
  const std::string name =
      backend != nullptr && backend->is_string() ? normalized(backend->get<std::string>()) : "te";
  if (name == "msamp") key.refuse("fp8 by MS-AMP is not estimated", "fp8_config.backend TE or AO");
  key.recipe().bf16 = true;
  const Json* gathers = key.other("fp8_config.enable_fsdp_float8_all_gather");
  const bool asks = gathers == nullptr || *gathers == true;  // utils/dataclasses.py, AORecipeKwargs
  take_fp8(key, name == "ao" ? "fp8-tensorwise" : "fp8-delayed", name == "ao" && asks);
}

/// Under HF Trainer its own arguments decide, and say the same.
void read_precision(Key& key) {
  if (key.recipe().bf16 || key.recipe().fp16) return key.ignore("the trainer's arguments decide");
  if (in_fp8(key)) return read_8_bits(key);
  read_mixed_precision(key);
}

constexpr std::array kRules{
    KeyRule{"distributed_type", "", read_distribution},
    KeyRule{"fsdp_config", "", read_fsdp_options},
    KeyRule{"deepspeed_config", "", read_deepspeed_options},
    KeyRule{"num_processes", "", read_processes},
    KeyRule{"num_machines", "", read_machines},
    KeyRule{"mixed_precision", "", read_precision},
    KeyRule{"use_cpu", "", read_cpu},
    KeyRule{"dynamo_config", "", read_dynamo},
    KeyRule{"megatron_lm_config", "", refuse_if_said},
    KeyRule{"parallelism_config.parallelism_config_tp_size", "/parallel/tensor", read_degree},
    KeyRule{"parallelism_config.parallelism_config_cp_size", "/parallel/context", read_degree},
    KeyRule{"parallelism_config.parallelism_config_cp_comm_strategy", "", read_rotation},
    KeyRule{"parallelism_config.parallelism_config_dp_replicate_size", "", read_copies},
    KeyRule{"parallelism_config.parallelism_config_sp_size", "/parallel/sequence", read_degree},
    KeyRule{"fp8_config", "", read_fp8},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
};

const std::array kIgnored{
    IgnoredKeys{"how processes find each other",
                {"compute_environment",
                 "machine_rank",
                 "main_process_ip",
                 "main_process_port",
                 "main_training_function",
                 "rdzv_backend",
                 "rdzv_endpoint",
                 "same_network",
                 "gpu_ids",
                 "tpu_*",
                 "debug",
                 "downcast_bf16",
                 "command_file",
                 "commands",
                 "num_cpu_threads_per_process",
                 "enable_cpu_affinity",
                 "ipex_config",
                 "mpirun_config",
                 "deepspeed_hostfile",
                 "parallelism_config.*",
                 "fsdp_version",
                 "use_*",
                 "tpu_name",
                 "training_script*",
                 "sagemaker_*",
                 "max_restarts",
                 "monitor_interval"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

void read(const Document& d, Recipe& recipe) {
  if (has_any(d, {"ec2_instance_type", "sagemaker_inputs_file"}))
    throw InputError({.file = d.file,
                      .key = "compute_environment",
                      .message = "AMAZON_SAGEMAKER's configuration is not read",
                      .expected = "LOCAL_MACHINE"});
  read_keys(d, {&kOwn}, recipe);
  // The plugins run with their defaults where a block is left out.
  const Json nothing = Json::object();
  const Json* type = value_below(d.value, "distributed_type");
  if (type != nullptr && *type == "FSDP" && !has_any(d, {"fsdp_config"})) {
    Key key(d, "distributed_type", *type, "", recipe);
    read_fsdp_block(key, nothing, "", kAccelerateFsdp);
  }
  take_mesh(d, recipe);
  recipe.set_default("/trainer", "hf_trainer");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"accelerate", "an accelerate configuration", is_accelerate, read};

}  // namespace shardplan::importing::accelerate
