// What a ds_config says of a job, beside what the job says itself.
#include <fmt/format.h>

#include "base/checked.h"
#include "base/format.h"
#include "load/deepspeed.h"
#include "load/ds_config/load.h"
#include "load/job_loader.h"
#include "load/optimizer.h"
#include "load/precision.h"
#include "parallel/degrees.h"

namespace shardplan {

void JobLoader::apply_ds_config() {
  DsConfigContext c;
  c.version = plan().framework.deepspeed.version;
  c.world_size = plan().data_ranks() * plan().parallel.sequence;
  c.pipeline_parallel = plan().parallel.pipeline;
  if (job_.model.facts.hidden > 0) c.hidden_size = job_.model.facts.hidden;
  c.auto_resolver = read_.auto_resolver.value_or(AutoResolver::hf_trainer);
  c.resolver_guessed = !read_.auto_resolver;
  Workload& w = plan().workload;
  // DeepSpeed refuses a file without a batch, unless its program puts one in.
  if (w.micro_batch == 0 && !says_batch(read_.ds_config) && !(read_.has_path && !is_inference()))
    assume_micro_batch();
  // The file counts pairs as its trainer does.
  if (w.micro_batch > 0) c.micro_batch = w.micro_batch / context_.sequences;
  if (w.gradient_accumulation > 0) c.gradient_accumulation = w.gradient_accumulation;
  const bool has_precision = reader_.has("precision");
  Precision wanted = load_precision(
      reader_, on_this_gpu(is_inference() ? "bf16-pure" : "bf16-master", plan().cluster.gpu));
  if (has_precision) {
    c.trainer.bf16 = wanted.compute == DType::bf16;
    c.trainer.fp16 = wanted.compute == DType::f16;
  }
  DsConfigResult result = load_ds_config(read_.ds_config, read_.ds_file, c);
  say_guesses(result.autos);
  job_.autos = std::move(result.autos);
  if (read_.from_file) job_.ds_config = read_.ds_config;
  for (Diagnostic& d : result.diagnostics)  // notes are about a file; `assumed` covers the rest
    if (read_.from_file || d.severity != Severity::note) job_.diagnostics.push_back(std::move(d));
  DeepSpeedOptions& options = plan().framework.deepspeed;
  options = result.options;
  options.short_form = !read_.from_file;
  options.moe = read_.framework.deepspeed.moe;
  options.model_dtype = read_.framework.deepspeed.model_dtype;
  options.activation_checkpointing.called =
      read_.framework.deepspeed.activation_checkpointing.called;
  count_checkpoints(options.activation_checkpointing);
  choose_batch(options);
  choose_precision(options, wanted, has_precision);
  price_ignored_offload();
  plan().optimizer = load_optimizer(reader_, job_.assumed);
  if (reader_.find("optimizer") == nullptr && options.optimizer_type) {
    plan().optimizer = deepspeed_optimizer(*options.optimizer_type, read_.ds_file);
    plan().optimizer.momentum = options.momentum;
    plan().optimizer.amsgrad = options.amsgrad;
  }
  if (options.torch_adam) plan().optimizer.implementation = OptimizerImplementation::foreach;
  if (reader_.find("gradient_clipping") == nullptr && options.gradient_clipping)
    plan().gradient_clipping = *options.gradient_clipping;
}

/// "auto" that stands for arguments of a trainer, which no job has.
void JobLoader::say_guesses(const std::vector<ResolvedAuto>& autos) {
  for (const ResolvedAuto& a : autos)
    if (a.guessed)
      job_.assumed.push_back(
          fmt::format("precision: {}, which most run in HF Trainer, for what the ds_config leaves "
                      "to the trainer; precision fp32 is its default",
                      a.path.substr(0, a.path.find('.'))));
  if (read_.text == DsText::hjson)
    job_.diagnostics.push_back(
        {.severity = Severity::warning,
         .file = read_.ds_file,
         .message = "comments or commas that JSON lacks: DeepSpeed reads them, HF Trainer and "
                    "accelerate do not"});
}

/// deepspeed.checkpointing.configure() takes the number from the program as well: that of the
/// blocks, or too few (runtime/activation_checkpointing/checkpointing.py).
void JobLoader::count_checkpoints(DeepSpeedCheckpointing& block) {
  if (block.contiguous_memory_optimization && block.called && !block.number_checkpoints)
    block.number_checkpoints = block_count(job_.model);
}

bool JobLoader::says_batch(const Json& ds_config) {
  return ds_config.is_object() && (ds_config.contains("train_batch_size") ||
                                   ds_config.contains("train_micro_batch_size_per_gpu"));
}

/// What an ignored offload_param leaves on every GPU.
void JobLoader::price_ignored_offload() {
  const std::int64_t bytes =
      checked_mul(job_.model.parameter_count(), size_of(plan().precision.params));
  for (Diagnostic& d : job_.diagnostics)
    if (d.severity == Severity::warning && d.key == "zero_optimization.offload_param" &&
        plan().framework.deepspeed.zero.stage < 3)
      d.message = say("{}, {} of them", d.message, format_bytes(bytes));
}

/// The file's batch keys win where the job is silent; two different answers are an error.
void JobLoader::choose_batch(const DeepSpeedOptions& options) {
  Workload& w = plan().workload;
  const auto choose = [&](std::int64_t& ours, const std::optional<std::int64_t>& theirs,
                          std::string_view key, std::string_view ds_key) {
    if (!theirs) return;
    if (ours > 0 && ours != *theirs && read_.from_file)
      reader_.fail(key,
                   fmt::format("{} here, but {} in the ds_config has {}", ours, ds_key, *theirs),
                   "the same number in both");
    if (ours == 0) ours = *theirs;
  };
  std::optional<std::int64_t> micro = options.micro_batch;
  if (micro) micro = checked_mul(*micro, context_.sequences);
  choose(w.micro_batch, micro, "workload.micro_batch", "train_micro_batch_size_per_gpu");
  choose(w.gradient_accumulation, options.gradient_accumulation, "workload.gradient_accumulation",
         "gradient_accumulation_steps");
}

void JobLoader::choose_precision(DeepSpeedOptions& options, const Precision& wanted,
                                 bool has_precision) {
  // Without a file the job's precision decides what the engine is told.
  if (!options.torch_autocast && (options.engine_dtype || read_.from_file)) {
    const DType type = options.engine_dtype.value_or(DType::f32);
    if (has_precision && type != wanted.params)
      reader_.fail("precision",
                   fmt::format("{} here, but the ds_config makes the engine run in {}", wanted.name,
                               name_of(type)),
                   "no precision in the job, or the same one");
    plan().precision = precision_preset(type == DType::bf16  ? "bf16-master"
                                        : type == DType::f16 ? "fp16-master"
                                                             : "fp32");
    return;
  }
  plan().precision = wanted;
  if (!has_precision) {
    if (options.torch_autocast && !is_inference())
      plan().precision = precision_preset(
          options.torch_autocast_dtype == DType::f16 ? "fp16-autocast" : "bf16-autocast");
    job_.assumed.push_back("precision: " + plan().precision.name);
  }
  options.torch_autocast = plan().precision.autocast();
  if (plan().precision.params != DType::f32 && !plan().precision.master && !is_inference())
    reader_.fail("precision",
                 fmt::format("DeepSpeed always keeps master weights, so {} cannot be had",
                             plan().precision.name),
                 "bf16-master or fp16-master; or master_weights_and_grads in a ds_config");
}

}  // namespace shardplan
