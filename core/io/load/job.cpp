#include "load/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/nearest.h"
#include "checkpointing/problems.h"
#include "compile/assumptions.h"
#include "compile/problems.h"
#include "frameworks/registry.h"
#include "json/reader.h"
#include "load/adapters.h"
#include "load/checkpointing.h"
#include "load/cluster.h"
#include "load/compile.h"
#include "load/deepspeed.h"
#include "load/ds_config/load.h"
#include "load/engine.h"
#include "load/framework.h"
#include "load/images.h"
#include "load/model.h"
#include "load/optimizer.h"
#include "load/options.h"
#include "load/parallel.h"
#include "load/positions.h"
#include "load/precision.h"
#include "load/rlhf.h"
#include "load/workload.h"
#include "optimizers/description.h"
#include "options/tables.h"
#include "parallel/degrees.h"
#include "parallel/sharding.h"
#include "rollout/sizes.h"
#include "trainers/bookkeeping.h"
#include "trainers/problems.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

class JobLoader {
 public:
  JobLoader(const Json& json, const std::string& file, const JobContext& context)
      : reader_(json, file), context_(context) {}

  Job load() {
    const auto schema = reader_.text("schema");
    if (schema && *schema != "shardplan.job/1")
      reader_.fail("schema", fmt::format("found '{}'", *schema), "shardplan.job/1");
    read_cluster();
    if (is_served())
      read_.framework.kind = default_framework(1);
    else
      read_ = read_framework(reader_, plan().cluster.world(), context_, job_.assumed);
    plan().framework = read_.framework;
    plan().workload = read_workload(reader_, context_.directory);
    take_injection();
    read_options(reader_, job_option_table(), plan());
    plan().compile = read_compile(reader_, *plan().trainer);
    read_checkpointing(reader_, plan());
    take_loss(plan(), context_.loss);
    plan().entropy = context_.entropy;
    read_model();
    plan().parallel = read_parallel(reader_, plan(), read_.ds_config);
    const bool in_loop = is_inference() && !plan().workload.generation.engine;
    if (in_loop && plan().data_ranks() != plan().cluster.world() && !generates_divided())
      reader_.fail("parallel", "this division is not modelled for inference",
                   "tensor, as many as there are GPUs, with framework single; or framework "
                   "deepspeed with kernel_inject, one group of all GPUs");
    check_degrees();  // before the batch, whose ranks follow from it
    if (zero_options(plan()) != nullptr) {
      apply_ds_config();
    } else {
      plan().precision = load_precision(reader_, usual_precision());
      if (!reader_.has("precision")) assume_precision();
      plan().optimizer = load_optimizer(reader_, job_.assumed);
    }
    take_trainer();
    fill_defaults();
    check_degrees();
    if (is_served()) check_engine();
    if (const auto problem = sharding_problem(job_.model, plan()))
      reader_.fail(problem->key, problem->message, problem->expected);
    check_precision();
    check_optimizer();
    for (Diagnostic& d : check_adapters(reader_, job_.model, plan()))
      job_.diagnostics.push_back(std::move(d));
    check_recipe();
    if (const auto problem = traits_of(plan()).plan_problem(plan()))
      reader_.fail(problem->key, problem->message, problem->expected);
    if (const auto problem = checkpointing_problem(job_.model, plan()))
      reader_.fail(problem->key, problem->message, problem->expected);
    if (zero_options(plan()) != nullptr && !is_inference())
      for (const auto check : {check_deepspeed_checkpointing, about_flat_gradients})
        if (auto warning = check(reader_, job_)) job_.diagnostics.push_back(std::move(*warning));
    // How long and on what to train is shardplan-validate's to read.
    for (const auto* key : {"name", "comment", "description", "run"}) reader_.find(key);
    reader_.finish();
    return std::move(job_);
  }

 private:
  Plan& plan() { return job_.plan; }
  /// transformers' tensor-parallel plans divide a model that generates as one that trains.
  bool generates_divided() const {
    const Plan& p = job_.plan;
    return !traits_of(p).data_parallel && p.parallel.model_ranks() == p.parallel.tensor;
  }
  /// An engine of its own runs all of it, so that there is no framework.
  bool is_served() {
    const Json* workload = reader_.find("workload");
    if (workload == nullptr || !workload->is_object() || !workload->contains("engine"))
      return false;
    if (reader_.has("framework"))
      reader_.fail("framework", "an engine serves this job, and runs without one",
                   "no framework; or no workload.engine");
    return true;
  }
  /// An engine's degree is its own.
  void check_degrees() {
    if (!plan().workload.generation.engine) check_parallel(reader_, job_.model, plan());
  }
  void check_engine() {
    Workload& w = plan().workload;
    RolloutEngine& engine = *w.generation.engine;
    check_longest(reader_, "workload.engine", engine, w.generation.new_tokens);
    fit_length(reader_, "workload.engine", engine,
               w.sequence_length + std::max(w.generation.new_tokens, engine.longest_answer));
    choose_sizes(engine, plan().cluster.gpu, EngineCaller::server);
    check_serving(reader_, job_.model, plan());
  }
  bool is_inference() const { return job_.plan.workload.kind == WorkKind::inference; }

  std::string_view usual_precision() const {
    return is_inference() ? "bf16-pure" : training_precision(job_.plan);
  }

  void assume_precision() {
    const bool halves = plan().workload.lora && plan().precision.params != DType::f32;
    job_.assumed.push_back("precision: " + plan().precision.name +
                           (halves ? ", the frozen model in 16 bits" : ""));
  }

  void read_cluster() {
    const Json* cluster = reader_.find("cluster");
    if (cluster == nullptr) reader_.missing("cluster", "a cluster such as \"4xA100-40GB\"");
    plan().cluster = load_cluster(*cluster, reader_.file(), "cluster", *context_.hardware);
    for (const std::string& note : plan().cluster.notes) job_.assumed.push_back("cluster: " + note);
  }

  void read_model() {
    const Json* model = reader_.find("model");
    if (model == nullptr) reader_.missing("model", "a catalogue name, a config.json or an object");
    BuildOptions options = build_options(plan());
    options.scalar_head = context_.scalar_head;
    if (context_.scalar_head || context_.whole_logits)
      options.head_loss = options.token_loss = nullptr;
    job_.model = load_model(*model, {reader_.file(), "model", context_.directory}, options);
    for (const std::string& fact : job_.model.facts.assumed)
      job_.assumed.push_back("model: " + fact);
    if (plan().state_kernels == StateKernels::fused && !job_.model.facts.has_state)
      reader_.fail("state_kernels",
                   fmt::format("given, but no layer of a network of type '{}' has a state",
                               job_.model.facts.model_type),
                   "torch, or a network such as mamba2 or qwen3_next");
    check_images(reader_, job_.model, plan().workload.images);
    for (std::string& fact : assumed_images(reader_, job_.model, plan()))
      job_.assumed.push_back(std::move(fact));
    const Workload& w = plan().workload;
    if (is_inference()) check_generation(reader_, job_.model, plan());
    if (w.lora && job_.model.trainable_count() == 0)
      reader_.fail("workload.lora.targets", "no module of this model has such a name",
                   "last components of linear modules, such as q_proj");
  }

  /// DeepSpeed-Inference's keys are the framework's, what they say is about generation.
  void take_injection() {
    if (!read_.injection) return;
    if (!is_inference())
      reader_.fail("framework.kernel_inject", "is for inference, and the workload trains",
                   "workload.kind inference");
    plan().workload.generation.injection = read_.injection;
  }

  /// The optimizer that it runs under the name that the job has.
  void take_trainer() {
    if (const auto problem = compile_problem(job_.model, plan()))
      reader_.fail("compile", problem->message, problem->expected);
    std::ranges::move(compile_assumptions(job_.model, plan()), std::back_inserter(job_.assumed));
    if (std::string known = compile_warning(job_.model, plan()); !known.empty())
      warn("compile", std::move(known));
    if (const auto problem = trainer_problem(plan()))
      reader_.fail("trainer", problem->message, problem->expected);
    if (const auto problem = kernels_problem(plan(), job_.model.facts.model_type))
      reader_.fail("kernels", problem->message, problem->expected);
    const Json* said = reader_.find("optimizer");
    const bool says = said != nullptr && said->is_object() && said->contains("embeddings_32bit");
    if (plan().trainer->embeddings_in_fp32 && !says)
      set_option(plan().optimizer, "embeddings_32bit", 1);
    assume_cast();
    const OptimizerDescription& runs = optimizer_of(*plan().trainer, *plan().optimizer.kind);
    if (&runs == plan().optimizer.kind) return;
    plan().optimizer.kind = &runs;
    plan().optimizer.implementation = runs.variants.front().implementation;
  }

  /// The larger of what may be: nothing in a job tells whether its program casts the model.
  void assume_cast() {
    const DeepSpeedOptions& options = plan().framework.deepspeed;
    if (zero_options(plan()) == nullptr || options.model_dtype || is_inference()) return;
    if (!plan().trainer->casts_divided_model || options.zero.stage < 3 ||
        options.zero.offload_param.device == OffloadDevice::none)
      return;
    job_.assumed.push_back(
        "parameters on the host: fp32, as after a model.to(float32); framework.model_dtype says "
        "otherwise");
  }

  void apply_ds_config() {
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
    if (w.micro_batch > 0) c.micro_batch = w.micro_batch;
    if (w.gradient_accumulation > 0) c.gradient_accumulation = w.gradient_accumulation;
    const bool has_precision = reader_.has("precision");
    Precision wanted = load_precision(reader_, is_inference() ? "bf16-pure" : "bf16-master");
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
    options.optimizer_from_program &= read_.from_file;
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
  void say_guesses(const std::vector<ResolvedAuto>& autos) {
    for (const ResolvedAuto& a : autos)
      if (a.guessed)
        job_.assumed.push_back(fmt::format(
            "precision: {}, which most run in HF Trainer, for what the ds_config leaves "
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
  void count_checkpoints(DeepSpeedCheckpointing& block) {
    if (block.contiguous_memory_optimization && block.called && !block.number_checkpoints)
      block.number_checkpoints = block_count(job_.model);
  }

  static bool says_batch(const Json& ds_config) {
    return ds_config.is_object() && (ds_config.contains("train_batch_size") ||
                                     ds_config.contains("train_micro_batch_size_per_gpu"));
  }

  void assume_micro_batch() {
    plan().workload.micro_batch = 1;
    job_.assumed.push_back("micro-batch: 1");
  }

  /// What an ignored offload_param leaves on every GPU.
  void price_ignored_offload() {
    const std::int64_t bytes =
        checked_mul(job_.model.parameter_count(), size_of(plan().precision.params));
    for (Diagnostic& d : job_.diagnostics)
      if (d.severity == Severity::warning && d.key == "zero_optimization.offload_param" &&
          plan().framework.deepspeed.zero.stage < 3)
        d.message = say("{}, {} of them", d.message, format_bytes(bytes));
  }

  /// The file's batch keys win where the job is silent; two different answers are an error.
  void choose_batch(const DeepSpeedOptions& options) {
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
    choose(w.micro_batch, options.micro_batch, "workload.micro_batch",
           "train_micro_batch_size_per_gpu");
    choose(w.gradient_accumulation, options.gradient_accumulation, "workload.gradient_accumulation",
           "gradient_accumulation_steps");
  }

  void choose_precision(DeepSpeedOptions& options, const Precision& wanted, bool has_precision) {
    // Without a file the job's precision decides what the engine is told.
    if (!options.torch_autocast && (options.engine_dtype || read_.from_file)) {
      const DType type = options.engine_dtype.value_or(DType::f32);
      if (has_precision && type != wanted.params)
        reader_.fail("precision",
                     fmt::format("{} here, but the ds_config makes the engine run in {}",
                                 wanted.name, name_of(type)),
                     "no precision in the job, or the same one");
      plan().precision = precision_preset(type == DType::bf16  ? "bf16-master"
                                          : type == DType::f16 ? "fp16-master"
                                                               : "fp32");
      return;
    }
    plan().precision = wanted;
    if (!has_precision) {
      plan().precision =
          precision_preset(is_inference()                               ? "bf16-pure"
                           : !options.torch_autocast                    ? "bf16-master"
                           : options.torch_autocast_dtype == DType::f16 ? "fp16-autocast"
                                                                        : "bf16-autocast");
      job_.assumed.push_back("precision: " + plan().precision.name);
    }
    options.torch_autocast = plan().precision.autocast();
    if (plan().precision.params != DType::f32 && !plan().precision.master && !is_inference())
      reader_.fail("precision",
                   fmt::format("DeepSpeed always keeps master weights, so {} cannot be had",
                               plan().precision.name),
                   "bf16-master or fp16-master; or master_weights_and_grads in a ds_config");
  }

  void assume_generation() {
    Workload& w = plan().workload;
    const auto assume = [&](std::int64_t& value, std::int64_t fallback, std::string_view what) {
      if (value > 0) return;
      value = fallback;
      job_.assumed.push_back(fmt::format("{}: {}", what, fallback));
    };
    if (!w.generation.engine) assume(w.micro_batch, 1, "batch");
    assume(w.generation.new_tokens, 256, "new tokens");
    const std::int64_t room = job_.model.facts.max_positions - w.generation.new_tokens;
    assume(w.sequence_length, room > 0 ? std::min<std::int64_t>(2048, room) : 2048,
           "prompt length");
  }

  /// The sequence length of a job with lengths is what samples are cut to; of its plan that of the
  /// longest batch.
  void take_lengths() {
    Workload& w = plan().workload;
    if (!w.lengths || (w.packing && w.sequence_length == 0)) return;
    if (w.sequence_length > 0) w.lengths = cut_lengths(*std::move(w.lengths), w.sequence_length);
    if (!w.packing) w.sequence_length = w.lengths->longest;
  }

  void fill_defaults() {
    Workload& w = plan().workload;
    const ModelFacts& facts = job_.model.facts;
    if (is_inference()) assume_generation();
    if (w.micro_batch == 0 && !w.generation.engine) assume_micro_batch();
    if (w.gradient_accumulation == 0) w.gradient_accumulation = 1;
    take_lengths();
    if (w.sequence_length == 0) {
      const std::int64_t usual = facts.usual_length > 0 ? facts.usual_length : 2048;
      w.sequence_length = facts.max_positions > 0 ? std::min(usual, facts.max_positions) : usual;
      w.sequence_length = length_with_images(job_.model, plan(), w.sequence_length);
      job_.assumed.push_back(fmt::format("sequence length: {}", w.sequence_length));
    }
    check_image_tokens(reader_, job_.model, plan());
    if (facts.aligns_labels && w.target_length == 0)
      job_.assumed.push_back(fmt::format("target length: {} labels, as many as there are positions",
                                         w.sequence_length));
    if ((facts.encoder_decoder || facts.aligns_labels) && w.target_length == 0)
      w.target_length = w.sequence_length;
    if (auto problem = longer_than_positions(facts, plan(), reader_.file()))
      job_.diagnostics.push_back(*std::move(problem));
    if (!facts.supports_sdpa && plan().attention == AttentionKind::sdpa)
      warn("attention", fmt::format("{} has no fused attention in transformers: eager is assumed",
                                    facts.model_type));
  }

  /// Linears that multiply in formats of their own, over plain parameters.
  void check_recipe() {
    const ProductRecipe& recipe = recipe_of(plan().precision.linear);
    if (recipe.cast == OperandCast::none) return;
    const Plan& p = plan();
    if (lacks(p.cluster.gpu, recipe.units))
      reader_.fail("precision.linear", say("{} has no {}", p.cluster.gpu.name, recipe.wants),
                   "bf16, or a newer GPU");
    if (p.workload.kind != WorkKind::train || !traits_of(p).takes_recipes ||
        (p.workload.lora && !traits_of(p).is_own_engine))
      reader_.fail("precision.linear", "is for full training with plain parameters",
                   "framework native, or single, ddp, fsdp2 or megatron with method full");
    if (traits_of(p).is_own_engine) return;  // it has limits and casts of its own
    check_recipe_widths(recipe);
    const bool fuses_casts = recipe.cast == OperandCast::eager && p.compile.has_value();
    if (!fuses_casts) warn("precision.linear", std::string(recipe.caveat));
    if (recipe.cast == OperandCast::kept && expert_count(job_.model) > 0)
      job_.assumed.emplace_back(
          "experts keep what they read in 16 bits, which is more, beside weights in 8 bits");
  }

  void check_recipe_widths(const ProductRecipe& recipe) {
    const auto odd = [&](std::int64_t width) { return width % recipe.multiple != 0; };
    const std::int64_t tokens = plan().workload.micro_batch * plan().workload.sequence_length;
    if (odd(tokens))
      reader_.fail("precision.linear",
                   fmt::format("{} tokens of a micro-batch: {} wants a multiple of {}", tokens,
                               recipe.library, recipe.multiple),
                   "another micro_batch or sequence_length");
    for (const Parameter& w : job_.model.parameters)
      if (w.quantizable && std::ranges::any_of(w.shape, odd))
        reader_.fail("precision.linear",
                     fmt::format("{} has a width that {} does not divide, as {} wants", w.name,
                                 recipe.multiple, recipe.library),
                     "bf16");
  }

  void check_precision() {
    const Gpu& gpu = plan().cluster.gpu;
    const bool bf16 = plan().precision.compute == DType::bf16;
    if (bf16 && lacks(gpu, PeakRate::bf16))
      warn("precision",
           fmt::format("{} has no bf16 units: use fp16-master or fp16-autocast", gpu.name));
  }

  static bool keeps_pages(const OptimizerDescription& optimizer) {
    return std::ranges::any_of(optimizer.states, [](const State& s) { return s.paged_from > 0; });
  }

  /// What is known to stop at the first step. Its states are estimated all the same.
  void check_optimizer() {
    if (is_inference()) return;
    const OptimizerDescription& optimizer = *plan().optimizer.kind;
    const Given given = traits_of(plan()).given;
    if (traits_of(plan()).has_zero && plan().framework.deepspeed.zero.stage > 0 &&
        keeps_pages(optimizer))
      reader_.fail(
          "optimizer",
          "paged states under ZeRO: DeepSpeed 0.19.6 stops at an optimizer that it has not "
          "tested (\"zero_allow_untested_optimizer\"), and its own offload cannot move them",
          "adamw, or offload_optimizer in place of paging");
    const std::string_view stops = optimizer.stops[static_cast<std::size_t>(given)];
    if (!stops.empty()) warn("optimizer", std::string(stops));
    if (plan().precision.gradients != DType::f32 && given == Given::tensors &&
        !optimizer.stops_at_half.empty())
      warn("optimizer", std::string(optimizer.stops_at_half));
  }

  void warn(std::string key, std::string message) {
    job_.diagnostics.push_back({.severity = Severity::warning,
                                .file = reader_.file(),
                                .key = std::move(key),
                                .message = std::move(message)});
  }

  ObjectReader reader_;
  const JobContext& context_;
  FrameworkRead read_;
  Job job_;
};

}  // namespace

Job load_job(const Json& job, const std::string& file, const JobContext& context) {
  if (is_rlhf(job)) return load_rlhf_job(job, file, context);
  return JobLoader(job, file, context).load();
}

}  // namespace shardplan
