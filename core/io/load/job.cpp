#include "load/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "checkpointing/problems.h"
#include "frameworks/registry.h"
#include "json/reader.h"
#include "load/adapters.h"
#include "load/checkpointing.h"
#include "load/cluster.h"
#include "load/compile.h"
#include "load/deepspeed.h"
#include "load/framework.h"
#include "load/generation.h"
#include "load/images.h"
#include "load/job_loader.h"
#include "load/model.h"
#include "load/optimizer.h"
#include "load/options.h"
#include "load/parallel.h"
#include "load/precision.h"
#include "load/rlhf.h"
#include "load/stored_weights.h"
#include "load/trainer_defaults.h"
#include "load/workload.h"
#include "model/peft_targets.h"
#include "options/choices.h"
#include "options/tables.h"
#include "parallel/sharding.h"
#include "trainers/bookkeeping.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

/// What a block's linear layers are named, but for what was asked for: `targets` may be right in
/// another network.
std::string names_to_expect(const Model& model, const std::vector<std::string>& targets) {
  for (const std::string& name : linear_names(model))
    if (std::find(targets.begin(), targets.end(), name) == targets.end())
      return fmt::format(
          "all-linear, or last parts of names, such as {}, that shardplan model lists", name);
  return "all-linear";
}

}  // namespace

Job JobLoader::load() {
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
  // "attention": "flash_attention_2", as transformers has it, says whose kernel it is too.
  if (const auto word = reader_.text("attention"); word && !reader_.has("sdpa_kernel"))
    if (const NamedValue* own = find_choice(kSdpaKernels, *word);
        own != nullptr && own->name == "flash_attn")
      plan().sdpa_kernel = SdpaKernel::flash_attn;
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

/// transformers' tensor-parallel plans divide a model that generates as one that trains.
bool JobLoader::generates_divided() const {
  const Plan& p = job_.plan;
  return !traits_of(p).data_parallel && p.parallel.model_ranks() == p.parallel.tensor;
}

/// An engine of its own runs all of it, so that there is no framework.
bool JobLoader::is_served() {
  const Json* workload = reader_.find("workload");
  if (workload == nullptr || !workload->is_object() || !workload->contains("engine")) return false;
  if (reader_.has("framework"))
    reader_.fail("framework", "an engine serves this job, and runs without one",
                 "no framework; or no workload.engine");
  return true;
}

std::string_view JobLoader::usual_precision() const {
  return is_inference() ? on_this_gpu("bf16-pure", job_.plan.cluster.gpu)
                        : training_precision(job_.plan);
}

void JobLoader::assume_precision() {
  const bool halves = plan().workload.lora && plan().precision.params != DType::f32;
  job_.assumed.push_back("precision: " + plan().precision.name +
                         (halves ? ", the frozen model in 16 bits" : ""));
}

bool JobLoader::says_quantization() {
  const Json* workload = reader_.find("workload");
  return workload != nullptr && workload->is_object() && workload->contains("quantization");
}

void JobLoader::read_cluster() {
  const Json* cluster = reader_.find("cluster");
  if (cluster == nullptr) reader_.missing("cluster", "a cluster such as \"4xA100-40GB\"");
  plan().cluster = load_cluster(*cluster, reader_.file(), "cluster", *context_.hardware);
  for (const std::string& note : plan().cluster.notes) job_.assumed.push_back("cluster: " + note);
}

void JobLoader::read_model() {
  const Json* model = reader_.find("model");
  if (model == nullptr) reader_.missing("model", "a catalogue name, a config.json or an object");
  BuildOptions options = build_options(plan());
  const bool open_targets = take_default_targets(*model, options);
  options.scalar_head = context_.scalar_head;
  if (context_.scalar_head || context_.whole_logits)
    options.head_loss = options.token_loss = nullptr;
  const ModelContext context{reader_.file(), "model", context_.directory};
  job_.model = load_model(*model, context, options);
  if (open_targets) {
    std::vector<std::string>& targets = plan().workload.lora->targets;
    if (job_.model.trainable_count() == 0) {  // none of its linears has such a name
      options.lora->targets = targets = {"all-linear"};
      job_.model = load_model(*model, context, options);
    }
    job_.assumed.push_back(
        fmt::format("lora.targets: {}; peft has no default for a network of type '{}'",
                    fmt::join(targets, ", "), job_.model.facts.model_type));
  }
  for (const std::string& fact : job_.model.facts.assumed) job_.assumed.push_back("model: " + fact);
  if (plan().state_kernels == StateKernels::fused && !job_.model.facts.has_state)
    reader_.fail("state_kernels",
                 fmt::format("given, but no layer of a network of type '{}' has a state",
                             job_.model.facts.model_type),
                 "torch, or a network such as mamba2 or qwen3_next");
  check_images(reader_, job_.model, plan().workload.images);
  for (std::string& fact : assumed_images(reader_, job_.model, plan()))
    job_.assumed.push_back(std::move(fact));
  take_stored_weights(*model);
  const Workload& w = plan().workload;
  if (is_inference()) check_generation(reader_, job_.model, plan());
  if (w.lora && job_.model.trainable_count() == 0)
    reader_.fail("workload.lora.targets",
                 fmt::format("no linear layer of a network of type '{}' is named {}",
                             job_.model.facts.model_type, fmt::join(w.lora->targets, " or ")),
                 names_to_expect(job_.model, w.lora->targets));
}

/// peft's own targets of the network's type; whether it has none, where the job says none.
bool JobLoader::take_default_targets(const Json& model, BuildOptions& options) {
  if (!options.lora || options.adapts_linears_alone || options.joins_adapters) return false;
  if (says_targets() || options.lora->targets.empty()) return false;
  const auto config = find_config(model, {reader_.file(), "model", context_.directory});
  if (!config || !config->config.contains("model_type")) return false;
  auto own = default_targets(config->config.at("model_type").get<std::string>());
  if (own.empty()) return true;
  options.lora->targets = plan().workload.lora->targets = std::move(own);
  return false;
}

bool JobLoader::says_targets() {
  const Json* workload = reader_.find("workload");
  if (workload == nullptr || !workload->is_object() || !workload->contains("lora")) return false;
  const Json& lora = workload->at("lora");
  return lora.is_object() && lora.contains("targets");
}

/// An engine loads a checkpoint as it is stored, unless the job says otherwise.
void JobLoader::take_stored_weights(const Json& model) {
  if (!is_served() || says_quantization()) return;
  const auto config = find_config(model, {reader_.file(), "model", context_.directory});
  const auto stored = config ? stored_weights(config->config) : std::nullopt;
  if (!stored) return;
  plan().workload.generation.weights = stored->format;
  job_.assumed.push_back(
      stored->known
          ? fmt::format("quantization: {}, in which the checkpoint is stored", stored->method)
          : fmt::format("quantization: none; the checkpoint is stored in {}, which is not modelled",
                        stored->method));
}

/// DeepSpeed-Inference's keys are the framework's, what they say is about generation.
void JobLoader::take_injection() {
  if (!read_.injection) return;
  if (!is_inference())
    reader_.fail("framework.kernel_inject", "is for inference, and the workload trains",
                 "workload.kind inference");
  plan().workload.generation.injection = read_.injection;
}

void JobLoader::warn(std::string key, std::string message) {
  job_.diagnostics.push_back({.severity = Severity::warning,
                              .file = reader_.file(),
                              .key = std::move(key),
                              .message = std::move(message)});
}

namespace {

/// What its trainer decides depends on whether there is more than one GPU.
FilledJob filled(const Json& job, const std::string& file, const JobContext& context) {
  if (!job.is_object() || !job.contains("trainer") || !job.contains("cluster")) return {job, {}};
  const Cluster cluster = load_cluster(job.at("cluster"), file, "cluster", *context.hardware);
  return with_trainer_defaults(job, cluster.world());
}

}  // namespace

Job load_job(const Json& said, const std::string& file, const JobContext& context) {
  const FilledJob whole = filled(said, file, context);
  Job job = is_rlhf(whole.job) ? load_rlhf_job(whole.job, file, context)
                               : JobLoader(whole.job, file, context).load();
  job.assumed.insert(job.assumed.begin(), whole.assumed.begin(), whole.assumed.end());
  return job;
}

}  // namespace shardplan
