#include "import/shipped_ds_configs.h"

#include <array>

namespace shardplan::importing {
namespace {

/// What one file says; keys that no estimate depends on are left out.
struct Shipped {
  std::string_view name;
  int stage;
  bool cpu_optimizer = false, cpu_parameters = false, always_bf16 = false, compiles = false;
};

/// deepspeed_configs of axolotl (067b021c8).
constexpr std::array kAxolotl{
    Shipped{.name = "zero1.json", .stage = 1},
    Shipped{.name = "zero1_torch_compile.json", .stage = 1, .compiles = true},
    Shipped{.name = "zero2.json", .stage = 2, .cpu_optimizer = true},
    Shipped{
        .name = "zero2_torch_compile.json", .stage = 2, .cpu_optimizer = true, .compiles = true},
    Shipped{.name = "zero3.json", .stage = 3},
    Shipped{.name = "zero3_bf16.json", .stage = 3, .always_bf16 = true},
    Shipped{.name = "zero3_bf16_cpuoffload_all.json",
            .stage = 3,
            .cpu_optimizer = true,
            .cpu_parameters = true,
            .always_bf16 = true},
    Shipped{.name = "zero3_bf16_cpuoffload_params.json",
            .stage = 3,
            .cpu_parameters = true,
            .always_bf16 = true}};

/// examples/deepspeed of LLaMA-Factory (ff6d4d12e).
constexpr std::array kLlamaFactory{
    Shipped{.name = "ds_z0_config.json", .stage = 0},
    Shipped{.name = "ds_z2_config.json", .stage = 2},
    Shipped{.name = "ds_z2_offload_config.json", .stage = 2, .cpu_optimizer = true},
    Shipped{.name = "ds_z3_config.json", .stage = 3},
    Shipped{.name = "ds_z3_offload_config.json",
            .stage = 3,
            .cpu_optimizer = true,
            .cpu_parameters = true}};

void let_trainer_fill(Json& of, std::initializer_list<const char*> keys) {
  for (const char* key : keys) of[key] = "auto";
}

/// What all of both say: batches, clipping and types as the trainer's arguments have them.
Json whole(const Shipped& file, const Json& zero) {
  Json config{{"zero_optimization", zero}, {"bf16", {{"enabled", "auto"}}}};
  let_trainer_fill(config, {"gradient_accumulation_steps", "gradient_clipping", "train_batch_size",
                            "train_micro_batch_size_per_gpu"});
  if (file.always_bf16)
    config["bf16"]["enabled"] = true;
  else
    config["fp16"] = Json{{"enabled", "auto"}};
  return config;
}

Json zero_of(const Shipped& file, const Json& host) {
  Json zero{{"stage", file.stage}};
  if (file.stage == 3)
    let_trainer_fill(zero, {"reduce_bucket_size", "stage3_prefetch_bucket_size",
                            "stage3_param_persistence_threshold"});
  if (file.cpu_optimizer) zero["offload_optimizer"] = host;
  if (file.cpu_parameters) zero["offload_param"] = host;
  return zero;
}

Json of_axolotl(const Shipped& file) {
  Json host{{"device", "cpu"}};
  if (file.stage == 3) host["pin_memory"] = true;
  Json zero = zero_of(file, host);
  zero["overlap_comm"] = true;
  if (file.stage > 1) zero["contiguous_gradients"] = true;
  if (file.stage == 3)
    zero.update({{"sub_group_size", 0},
                 {"max_live_parameters", 0},
                 {"max_reuse_distance", 0},
                 {"gather_16bit_weights_on_model_save", true}});
  Json config = whole(file, zero);
  if (file.cpu_parameters)  // another optimizer than DeepSpeed's own may step on the host
    config.update(
        {{"zero_force_ds_cpu_optimizer", false}, {"zero_allow_untested_optimizer", true}});
  if (file.compiles) config["compile"] = Json{{"disable", false}, {"backend", "inductor"}};
  return config;
}

Json of_llama_factory(const Shipped& file) {
  constexpr double kBucket = 5e8, kMost = 1e9;
  Json zero = zero_of(file, {{"device", "cpu"}, {"pin_memory", true}});
  zero.update({{"overlap_comm", false}, {"contiguous_gradients", true}});
  if (file.stage < 3)
    zero.update({{"allgather_partitions", true},
                 {"allgather_bucket_size", kBucket},
                 {"reduce_scatter", true},
                 {"reduce_bucket_size", kBucket},
                 {"round_robin_gradients", true}});
  else
    zero.update({{"sub_group_size", kMost},
                 {"stage3_max_live_parameters", kMost},
                 {"stage3_max_reuse_distance", kMost},
                 {"stage3_gather_16bit_weights_on_model_save", true}});
  Json config = whole(file, zero);
  config["zero_allow_untested_optimizer"] = true;
  return config;
}

template <std::size_t N>
const Shipped* named(const std::array<Shipped, N>& files, std::string_view name) {
  for (const Shipped& file : files)
    if (file.name == name) return &file;
  return nullptr;
}

}  // namespace

std::optional<ShippedDsConfig> shipped_ds_config(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return std::nullopt;
  const std::string_view folder = path.substr(0, slash), name = path.substr(slash + 1);
  if (folder.ends_with("deepspeed_configs"))
    if (const Shipped* file = named(kAxolotl, name))
      return ShippedDsConfig{"axolotl", of_axolotl(*file)};
  if (folder.ends_with("examples/deepspeed"))
    if (const Shipped* file = named(kLlamaFactory, name))
      return ShippedDsConfig{"LLaMA-Factory", of_llama_factory(*file)};
  return std::nullopt;
}

}  // namespace shardplan::importing
