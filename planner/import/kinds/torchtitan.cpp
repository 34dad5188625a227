// torchtitan's TOML (v0.2.2 and before: torchtitan/config/job_config.py,
// models/llama3/infra/parallelize.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/kinds/kind.h"
#include "import/kinds/torchtitan_models.h"
#include "import/kinds/torchtitan_older.h"
#include "import/vocabulary.h"
#include "load/model.h"

namespace shardplan::importing::torchtitan {
namespace {

bool is_torchtitan(const Document& d) {
  return has_any(d, {"model.flavor"}) ||
         (has_any(d, {"training"}) && has_any(d, {"parallelism", "activation_checkpoint", "job"}));
}

std::string text_at(const Document& d, std::string_view path, std::string_view otherwise) {
  const Json* value = value_below(d.value, path);
  return value != nullptr && value->is_string() ? value->get<std::string>()
                                                : std::string(otherwise);
}

void read_flavor(Key& key) {
  for (const char* images : {"flux", "vlm"})
    if (key.other("model.name") != nullptr && *key.other("model.name") == images)
      key.refuse(fmt::format("'{}' makes or reads images: not estimated", images),
                 "a language model");
  if (key.recipe().has_model) return key.ignore("--model says which");
  if (key.other("hf_transformers.model") != nullptr) {
    if (key.text() != "full" && key.text() != "debugmodel")
      key.refuse(fmt::format("'{}' is no flavor of transformers' models", key.text()),
                 "full or debugmodel");
    return key.ignore("hf_transformers.model says which");
  }
  const std::string name = text_at(key.document(), "model.name", "llama3");
  const auto model = torchtitan_model(name, key.text());
  if (!model) {
    const std::vector<std::string> flavors = torchtitan_flavors(name);
    if (flavors.empty())
      key.refuse(fmt::format("torchtitan's model '{}' is not known here", name),
                 fmt::format("one of {}; or --model", fmt::join(torchtitan_names(), ", ")));
    key.refuse(fmt::format("'{}' has no flavor '{}' here", name, key.text()),
               fmt::format("one of {}; or --model", fmt::join(flavors, ", ")));
  }
  key.take("/model", *model);
  // What flex attention computes without keeping scores.
  if (name == "llama4")
    key.warn(
        "heads of each fourth layer are not turned, the others see blocks of tokens: all are "
        "estimated as turned and as seeing all, which is more");
  if (name == "gpt_oss")
    key.warn("flex attention keeps no scores: estimated as eager attention, which is more");
}

void read_hf_model(Key& key) {
  read_model(key);
  const Json* flavor = key.other("model.flavor");
  if (flavor == nullptr || *flavor != "debugmodel" || key.recipe().has_model) return;
  const auto found = find_config(*key.recipe().find("/model"), {key.document().file, key.path()});
  if (!found) key.refuse(fmt::format("'{}' is no model of the catalogue", key.text()), "--model");
  Json small = found->config;
  shrink_to_debug_model(small);
  key.recipe().job["model"] = small;
}

void read_optimizer_name(Key& key) {
  const std::string name = key.text();
  if (name != "AdamW" && name != "Adam")
    key.refuse(fmt::format("the optimizer '{}' is not read", name), "AdamW or Adam");
  const std::string how = text_at(
      key.document(), "optimizer.implementation",
      key.other_is_true("optimizer.fused") || key.other("optimizer.fused") == nullptr ? "fused"
                                                                                      : "foreach");
  key.take("/optimizer",
           Json{{"name", name == "Adam" ? "adam" : "adamw"}, {"implementation", how}});
}

void read_global_batch(Key& key) {
  const std::int64_t batch = key.integer(-1);
  if (batch < 0) return key.ignore("one micro-batch a step");
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// apply_ac: whole blocks, each n-th one, or by the operation.
void read_activation(Key& key) {
  const std::string mode = key.text();
  if (mode == "none" || mode == "full") return key.take("/checkpointing", mode);
  if (mode != "selective")
    key.refuse(fmt::format("the mode '{}' is not estimated", mode), "none, full or selective");
  const Json* option = key.other("activation_checkpoint.selective_ac_option");
  const std::string how = option == nullptr     ? "2"
                          : option->is_string() ? option->get<std::string>()
                                                : option->dump();
  if (how == "op")
    return key.take("/checkpointing", Json{{"policy", "selective_op"}, {"every", 2}});
  if (how.empty() || how.size() > 3 || how.find_first_not_of("0123456789") != std::string::npos)
    key.refuse(fmt::format("found selective_ac_option '{}'", how), "'op' or a number");
  key.take("/checkpointing", Json{{"policy", "blocks"}, {"every", std::stoi(how)}});
}

void read_compile_switch(Key& key) {
  if (!key.flag()) return key.ignore("not compiled");
  const Json* parts = key.other("compile.components");
  const bool model =
      parts == nullptr || std::find(parts->begin(), parts->end(), "model") != parts->end();
  if (!model) return key.warn("only the loss is compiled, and is estimated as it is in PyTorch");
  key.take("/compile", true);
}

void read_compiled_parts(Key& key) {
  key.ignore("the model is compiled block by block, the loss estimated as it is in PyTorch");
}

void read_converters(Key& key) {
  for (const std::string& name : key.list()) {
    if (name == "float8" || name == "quantize.linear.float8") {
      std::string recipe = text_at(key.document(), "quantize.linear.float8.recipe_name",
                                   text_at(key.document(), "float8.recipe_name", "tensorwise"));
      if (recipe != "tensorwise" && recipe != "rowwise")
        key.refuse(fmt::format("the recipe '{}' is not estimated", recipe), "tensorwise, rowwise");
      key.take("/precision/linear", "fp8-" + recipe);
      const auto asks = [&](const std::string& what) {
        const Json* now = key.other("quantize.linear.float8." + what);
        const Json* before = key.other("float8." + what);
        return (now != nullptr && *now == true) || (before != nullptr && *before == true);
      };
      // Without a recipe's name weights have one scale, as gathers in 8 bits want them.
      if (asks("enable_fsdp_float8_all_gather"))
        key.recipe().float8_gather =
            asks("precompute_float8_dynamic_scale_for_fsdp") ? "precomputed" : "dynamic";
    } else if (name == "mx" || name == "quantize.linear.mx") {
      key.take("/precision/linear", "mxfp8");
    } else {
      key.refuse(fmt::format("the converter '{}' is not estimated", name), "float8, mx");
    }
  }
  if (!key.said()) key.ignore("none");
}

void read_degree(Key& key) {
  const std::int64_t degree = key.integer(-1);
  if (degree <= 1) return key.ignore("not divided");
  key.take(degree);
}

void read_schedule(Key& key) {
  if (integer_at(key.document(), "parallelism.pipeline_parallel_degree").value_or(1) <= 1)
    return key.ignore("no pipeline");
  const std::string name = key.text();
  const std::string word = name == "1F1B"              ? "1f1b"
                           : name == "GPipe"           ? "gpipe"
                           : name == "Interleaved1F1B" ? "interleaved"
                           : name == "ZBVZeroBubble"   ? "zbv"
                                                       : "";
  if (word.empty())
    key.refuse(fmt::format("the schedule '{}' is not estimated", name),
               "GPipe, 1F1B, Interleaved1F1B or ZBVZeroBubble");
  key.take("/parallel/schedule", word);
  if (word != "interleaved" && word != "zbv") return;
  if (key.other("parallelism.pipeline_parallel_layers_per_stage") != nullptr)
    key.refuse("chunks by parallelism.pipeline_parallel_layers_per_stage are not read",
               "leave it out: two chunks on each stage");
  key.recipe().set("/parallel/virtual_pipeline", 2, key.origin());
}

/// Layers that the embedding and the head count as (_generate_llm_fqn_per_model_part).
void read_end_layers(Key& key) {
  if (integer_at(key.document(), "parallelism.pipeline_parallel_degree").value_or(1) <= 1)
    return key.ignore("no pipeline");
  const std::int64_t first =
      integer_at(key.document(), "parallelism.pipeline_parallel_first_stage_less_layers")
          .value_or(1);
  const std::int64_t last =
      integer_at(key.document(), "parallelism.pipeline_parallel_last_stage_less_layers")
          .value_or(1);
  if (first != last || first > 1)
    key.refuse(fmt::format("ends that count as {} and {} layers are not read", first, last),
               "1 for both, 0 for both, or parallel.stage_layers in a job");
  key.take("/parallel/balance", first == 0 ? "blocks" : "blocks_and_ends");
}

/// A pipeline cuts the local batch into micro-batches (pipeline_parallel_microbatch_size).
std::int64_t micro_batch_of(const Document& d, std::int64_t local) {
  if (integer_at(d, "parallelism.pipeline_parallel_degree").value_or(1) <= 1) return local;
  const std::int64_t size =
      integer_at(d, "parallelism.pipeline_parallel_microbatch_size").value_or(1);
  if (size < 1 || local % size != 0)
    throw InputError(
        {.file = d.file,
         .key = "parallelism.pipeline_parallel_microbatch_size",
         .message = fmt::format("{} does not divide the local batch of {}", size, local),
         .expected = "a divisor of training.local_batch_size"});
  return size;
}

void read_local_batch(Key& key) {
  const std::int64_t local = key.integer(1);
  const std::int64_t size = micro_batch_of(key.document(), local);
  key.take("/workload/micro_batch", size);
  const Json* global = key.other("training.global_batch_size");
  const bool said = global != nullptr && global->is_number_integer() && *global > 0;
  if (size != local && !said)
    key.recipe().set("/workload/gradient_accumulation", local / size, key.origin());
}

void read_expert_tensor(Key& key) {
  if (integer_at(key.document(), "parallelism.expert_parallel_degree").value_or(1) <= 1)
    return key.ignore("no expert parallelism");
  key.take(key.integer(1));
}

/// Norms of the first versions, by name.
void read_norm(Key& key) {
  if (key.text() == "rmsnorm" || key.text() == "fused_rmsnorm")
    return key.ignore("taken with model.flavor");
  key.warn("the norms of the flavor are estimated");
}

/// OptimizersInBackwardContainer: each parameter is updated when its gradient is whole
/// (components/optimizer.py).
void read_early_step(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("gradients are estimated as kept until the step, which is more");
}

constexpr std::array kRules{
    KeyRule{"model.flavor", "", read_flavor},
    KeyRule{"hf_transformers.model", "", read_hf_model},
    KeyRule{"training.local_batch_size", "", read_local_batch},
    KeyRule{"training.batch_size", "", read_local_batch},
    KeyRule{"training.global_batch_size", "", read_global_batch},
    KeyRule{"training.seq_len", "/workload/sequence_length", as_integer},
    KeyRule{"training.max_norm", "/gradient_clipping", as_number},
    KeyRule{"training.compile", "", read_compile_switch},
    KeyRule{"compile.enable", "", read_compile_switch},
    KeyRule{"compile.components", "", read_compiled_parts},
    KeyRule{"optimizer.name", "", read_optimizer_name},
    KeyRule{"optimizer.early_step_in_backward", "", read_early_step},
    KeyRule{"activation_checkpoint.mode", "", read_activation},
    KeyRule{"model.converters", "", read_converters},
    KeyRule{"model.norm_type", "", read_norm},
    KeyRule{"parallelism.tensor_parallel_degree", "/parallel/tensor", read_degree},
    KeyRule{"parallelism.pipeline_parallel_degree", "/parallel/pipeline", read_degree},
    KeyRule{"parallelism.context_parallel_degree", "/parallel/context", read_degree},
    KeyRule{"parallelism.expert_parallel_degree", "/parallel/expert", read_degree},
    KeyRule{"parallelism.expert_tensor_parallel_degree", "/parallel/expert_tensor",
            read_expert_tensor},
    KeyRule{"parallelism.pipeline_parallel_schedule", "", read_schedule},
    KeyRule{"parallelism.pipeline_parallel_first_stage_less_layers", "", read_end_layers},
    KeyRule{"parallelism.pipeline_parallel_last_stage_less_layers", "", read_end_layers},
    KeyRule{"parallelism.pipeline_parallel_schedule_csv", "", refuse_if_said},
    KeyRule{"parallelism.module_fqns_per_model_part", "", refuse_if_said},
    KeyRule{"experimental.custom_args_module", "", refuse_if_said},
};

const std::array kIgnored{
    IgnoredKeys{"taken with the rest of its block",
                {"model.name", "optimizer.implementation", "optimizer.fused",
                 "activation_checkpoint.selective_ac_option", "quantize.linear.*", "float8.*",
                 "mx.*", "training.mixed_precision_*", "training.dtype",
                 "training.enable_cpu_offload", "parallelism.data_parallel_*",
                 "parallelism.fsdp_reshard_after_forward", "compile.backend"}},
    IgnoredKeys{"a step does not depend on it",
                {"job.*",
                 "profiling.*",
                 "metrics.*",
                 "lr_scheduler.*",
                 "checkpoint.*",
                 "comm.*",
                 "model.hf_assets_path",
                 "model.tokenizer_path",
                 "model.print_after_conversion",
                 "optimizer.*",
                 "training.dataset*",
                 "training.steps",
                 "training.gc_*",
                 "training.warmup_steps",
                 "training.seed",
                 "training.deterministic",
                 "training.dataloader",
                 "debug.*",
                 "memory_estimation.*",
                 "fault_tolerance.*",
                 "activation_checkpoint.*",
                 "experimental.*",
                 "data.*",
                 "eval.*",
                 "parallelism.enable_async_tensor_parallel",
                 "parallelism.disable_loss_parallel",
                 "parallelism.context_parallel_*",
                 "parallelism.pipeline_parallel_*",
                 "parallelism.expert_parallel_comm_backend",
                 "parallelism.enable_compiled_autograd",
                 "quantize.grouped_mm"}},
    IgnoredKeys{"evaluation is no part of a training step", {"validation.*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// FSDP2 with fp32 shards, bf16 in computing and fp32 in reducing, which v0.2.2 has no choice of.
void read_sharding(const Document& d, Recipe& recipe) {
  const std::int64_t replicas =
      integer_at(d, "parallelism.data_parallel_replicate_degree").value_or(1);
  const std::int64_t shards = integer_at(d, "parallelism.data_parallel_shard_degree").value_or(-1);
  if (shards == 1 && replicas > 1) {
    recipe.set_default("/framework", Json{{"name", "ddp"}});
    return;
  }
  Json framework{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}};
  const std::string reshard = text_at(d, "parallelism.fsdp_reshard_after_forward", "default");
  const bool pipeline = integer_at(d, "parallelism.pipeline_parallel_degree").value_or(1) > 1;
  framework["reshard_after_forward"] = reshard == "always" || (reshard == "default" && !pipeline);
  if (text_at(d, "parallelism.context_parallel_rotate_method", "allgather") == "alltoall")
    framework["context_rotation"] = "alltoall";
  const Json* offload = value_below(d.value, "training.enable_cpu_offload");
  if (offload != nullptr && *offload == true) framework["cpu_offload"] = true;
  if (replicas > 1) {
    if (shards < 1)
      throw InputError({.file = d.file,
                        .key = "parallelism.data_parallel_shard_degree",
                        .message = fmt::format("is left open beside {} replicas", replicas),
                        .expected = "the GPUs that divide one copy"});
    framework["hybrid_shard_size"] =
        shards * integer_at(d, "parallelism.context_parallel_degree").value_or(1);
  }
  recipe.note({.kind = Note::Kind::took,
               .file = d.file,
               .key = "parallelism",
               .field = "framework: " + framework.dump()});
  recipe.set_default("/framework", framework);
}

void read_precision(const Document& d, Recipe& recipe) {
  const std::string kept = dtype_word(text_at(d, "training.dtype", "float32"));
  const std::string computed = dtype_word(text_at(d, "training.mixed_precision_param", "bfloat16"));
  const std::string preset = kept == "bf16"       ? "bf16-pure"
                             : computed == "bf16" ? "bf16-autocast"
                                                  : "fp32";
  if (recipe.find("/precision/linear") != nullptr)
    recipe.set_default("/precision/preset", preset);
  else
    recipe.set_default("/precision", preset);
}

void read(const Document& given, Recipe& recipe) {
  const Document d = with_present_names(given);
  read_keys(d, {&kOwn}, recipe);
  read_sharding(d, recipe);
  read_precision(d, recipe);
  // Its plans divide tokens along with layers (models/llama3/infra/parallelize.py, apply_tp).
  if (recipe.find("/parallel/tensor") != nullptr)
    recipe.set_default("/parallel/sequence_parallel", true);
  recipe.set_default("/trainer", "torchtitan");
  recipe.assume("/workload/micro_batch", 8, "torchtitan's default");
  recipe.assume("/workload/sequence_length", 2048, "torchtitan's default");
  recipe.set_default("/gradient_clipping", 1.0);
  recipe.set_default("/optimizer", Json{{"name", "adamw"}, {"implementation", "fused"}});
  recipe.assume("/checkpointing", Json{{"policy", "blocks"}, {"every", 2}},
                "torchtitan's default, each second block");
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"torchtitan", "a torchtitan configuration", is_torchtitan, read};

}  // namespace shardplan::importing::torchtitan
