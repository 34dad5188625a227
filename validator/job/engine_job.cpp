#include "job/engine_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/decoder.h"
#include "engine/perceptron.h"
#include "frameworks/registry.h"
#include "job/read_save.h"
#include "job/read_schedule.h"
#include "json/reader.h"
#include "model/read_spec.h"
#include "storage/movers.h"

namespace shardplan::validator {
namespace {

Keep keep_of(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::none:
      return Keep::everything;
    case Checkpointing::selective:
    case Checkpointing::selective_op:
      return Keep::products;
    case Checkpointing::full:
      return Keep::inputs;
    case Checkpointing::blocks:
      break;
  }
  return Keep::everything;
}

std::optional<CheckpointedBlocks> again_of(const CheckpointChoice& choice) {
  if (choice.how != Checkpointing::blocks) return std::nullopt;
  return CheckpointedBlocks{choice.share};
}

ProductsAgain products_again_of(const CheckpointChoice& choice) {
  return {choice.how == Checkpointing::selective_op ? choice.share.every : 0};
}

Fp8Recipe fp8_of(LinearRecipe recipe) {
  switch (recipe) {
    case LinearRecipe::fp8_tensorwise:
      return Fp8Recipe::tensorwise;
    case LinearRecipe::fp8_rowwise:
      return Fp8Recipe::rowwise;
    default:
      return Fp8Recipe::none;  // the loader refuses the rest for this engine
  }
}

/// core reads the kind of optimizer; its numbers are the engine's.
double read_optimizer(ObjectReader& job, OptimizerOptions& options) {
  double rate = 3e-4;
  if (job.find("optimizer") == nullptr || !job.find("optimizer")->is_object()) return rate;
  ObjectReader o = *job.object("optimizer");
  rate = o.number("lr", 0, 1e38).value_or(rate);
  options.epsilon = o.number("eps", 0, 1).value_or(options.epsilon);
  options.weight_decay = o.number("weight_decay", 0, 1e6).value_or(options.weight_decay);
  if (const Json* betas = o.array("betas")) {
    const auto beta = [&](std::size_t i) {
      if (betas->size() != 2 || !(*betas)[i].is_number() || (*betas)[i].get<double>() < 0 ||
          (*betas)[i].get<double>() >= 1)
        o.fail("betas", "found " + betas->dump(), "two numbers from 0 to below 1");
      return (*betas)[i].get<double>();
    };
    options.beta1 = beta(0);
    options.beta2 = beta(1);
  }
  return rate;
}

void read_loss_scale(ObjectReader& run, LossScaling& scaling) {
  auto o = run.object("loss_scale");
  if (!o) return;
  scaling.dynamic = o->boolean("dynamic").value_or(scaling.dynamic);
  scaling.initial = o->number("initial", 1, 0x1p40).value_or(scaling.initial);
  scaling.smallest = o->number("min", 1e-6, 0x1p40).value_or(scaling.smallest);
  scaling.window = o->integer("window", 1).value_or(scaling.window);
  scaling.hysteresis = o->integer("hysteresis", 1).value_or(scaling.hysteresis);
  o->finish();
}

void read_storage(ObjectReader& run, RunOptions& options) {
  auto o = run.object("nvme");
  if (!o) return;
  options.time_nvme = o->boolean("timed").value_or(false);
  StorageOptions& storage = options.storage;
  storage.folder = o->text("path").value_or("");
  storage.chunk_bytes =
      o->integer("chunk_bytes", kStorageBlock, std::int64_t{1} << 30).value_or(storage.chunk_bytes);
  if (storage.chunk_bytes % kStorageBlock != 0)
    o->fail("chunk_bytes", fmt::format("found {}", storage.chunk_bytes),
            fmt::format("a multiple of {}", kStorageBlock));
  storage.queue_depth =
      static_cast<int>(o->integer("queue_depth", 1, 1024).value_or(storage.queue_depth));
  storage.direct = o->boolean("direct").value_or(storage.direct);
  storage.cufile = o->text("cufile").value_or("");
  if (const auto name = o->text("io"); name && *name != "auto") {
    const auto found = std::ranges::find_if(
        io_paths(), [&](const IoPathRow& p) { return p.of_host && p.name == *name; });
    if (found == io_paths().end())
      o->fail("io", "found " + *name,
              "auto, io_uring or threads; framework.use_gds has the GPU read its parameters");
    storage.path = found->path;
  }
  o->finish();
}

void read_run(ObjectReader& job, EngineJob& engine, double rate) {
  static const Json kEmpty = Json::object();
  const Json* value = job.find("run");
  ObjectReader o(value == nullptr ? kEmpty : *value, job.file(), job.path_of("run"));
  RunOptions& run = engine.run;
  run.steps = o.integer("steps", 1, 1'000'000'000).value_or(run.steps);
  run.warmup = o.integer("warmup", 0, 1'000'000'000)
                   .value_or(std::min<std::int64_t>(run.warmup, run.steps - 1));
  if (run.warmup >= run.steps)
    o.fail("warmup", fmt::format("{} of {} steps are not timed", run.warmup, run.steps),
           fmt::format("less than {}", run.steps));
  engine.training.seed = static_cast<std::uint32_t>(o.integer("seed", 0, 0xFFFFFFFFLL).value_or(0));
  engine.training.optimizer.seed = engine.training.seed;
  run.data = o.text("data").value_or("");
  run.weights = o.text("weights").value_or("");
  engine.training.schedule = read_schedule(o, rate);
  run.lora_alpha = o.number("lora_alpha", 0, 1e6);
  if (run.lora_alpha && !engine.plan().workload.lora)
    o.fail("lora_alpha", "nothing has adapters", "workload.method lora with it");
  run.balanced_routing = o.boolean("balanced_routing").value_or(run.balanced_routing);
  auto* decoder = std::get_if<DecoderSpec>(&engine.network);
  const bool routes = decoder != nullptr && decoder->experts;
  if (run.balanced_routing && !routes)
    o.fail("balanced_routing", "the model has no experts", "a model with experts, or false");
  if (routes) decoder->experts->evenly = run.balanced_routing;
  read_loss_scale(o, engine.training.loss_scaling);
  read_storage(o, run);
  run.save = read_save(o);
  run.resume = o.text("resume").value_or("");
  o.finish();
}

/// peft's factor: alpha / rank, or alpha / √rank with its use_rslora.
LoraSpec lora_of(const Lora& lora, std::optional<double> alpha) {
  const auto rank = static_cast<double>(lora.rank);
  const double factor = alpha.value_or(rank) / (lora.rank_stabilized ? std::sqrt(rank) : rank);
  LoraSpec spec{.rank = lora.rank,
                .scale = static_cast<float>(factor),
                .targets = lora.targets,
                .parameters = lora.parameters};
  spec.base_of_experts = lora.base_of_experts;
  if (lora.base == Quantization::nf4) spec.base = BaseStore::nf4;
  if (lora.base == Quantization::nf4_double) spec.base = BaseStore::nf4_double;
  return spec;
}

}  // namespace

std::unique_ptr<Network> EngineJob::make_network(const NetworkRank& rank) const {
  const Workload& w = plan().workload;
  if (const auto* decoder = std::get_if<DecoderSpec>(&network))
    return make_decoder(*decoder, {w.micro_batch,
                                   w.sequence_length,
                                   training.dtype,
                                   keep,
                                   {rank.tensor, tensor_ranks()},
                                   {rank.stage, training.pipeline.stages, training.pipeline.chunks},
                                   {rank.context, context_ranks()},
                                   {rank.experts, expert_ranks()},
                                   plan().framework.native.capacity_factor,
                                   keeps_on_host(),
                                   fp8_of(plan().precision.linear),
                                   again_of(plan().checkpoint_choice()),
                                   products_again_of(plan().checkpoint_choice())});
  return make_perceptron(std::get<MlpSpec>(network), w.micro_batch, training.dtype);
}

bool EngineJob::tied() const {
  const auto* decoder = std::get_if<DecoderSpec>(&network);
  return decoder != nullptr && decoder->tied;
}

EngineJob load_engine_job(Json document, const std::string& file, const HardwareCatalog& hardware) {
  EngineJob engine;
  engine.document = std::move(document);
  engine.file = file;
  engine.directory = std::filesystem::path(file).parent_path().string();
  const JobContext context{.hardware = &hardware, .directory = engine.directory};
  engine.job = load_job(engine.document, file, context);
  ObjectReader reader(engine.document, file);
  const Plan& plan = engine.plan();
  if (!traits_of(plan).is_own_engine)
    reader.fail("framework.name",
                fmt::format("shardplan-validate runs the native engine, not {}",
                            name_of(plan.framework.kind)),
                "native");
  engine.network = read_spec(*reader.find("model"), {file, "model", engine.directory},
                             plan.workload.sequence_length);
  engine.keep = keep_of(plan.checkpointing);
  TrainingOptions& t = engine.training;
  t.stage = static_cast<int>(plan.framework.native.zero_stage);
  t.dtype = plan.precision.params;
  const NativeOptions& native = plan.framework.native;
  t.offload = {.states = native.offload_optimizer != OffloadDevice::none,
               .on_nvme = native.offload_optimizer == OffloadDevice::nvme,
               .parameters = native.offload_param != OffloadDevice::none,
               .parameters_on_nvme = native.offload_param == OffloadDevice::nvme,
               .direct = native.use_gds,
               .delayed = native.delayed_update};
  t.pipeline = {.stages = static_cast<int>(plan.parallel.pipeline),
                .chunks = static_cast<int>(plan.parallel.virtual_pipeline),
                .order = plan.parallel.schedule};
  t.accumulation = plan.workload.gradient_accumulation;
  t.optimizer.master = plan.precision.master;
  t.optimizer.states = plan.precision.optimizer_states;
  t.optimizer.largest_norm = plan.gradient_clipping;
  const double rate = read_optimizer(reader, t.optimizer);
  read_run(reader, engine, rate);
  if (const auto* decoder = std::get_if<DecoderSpec>(&engine.network);
      decoder != nullptr && decoder->experts && decoder->experts->balance > 0 &&
      t.pipeline.stages > 1)
    reader.fail("parallel.pipeline",
                "the balance of experts (output_router_logits) is of all layers together, and a "
                "stage has some",
                "1, or a model without output_router_logits");
  if (auto* decoder = std::get_if<DecoderSpec>(&engine.network);
      decoder != nullptr && plan.workload.lora)
    decoder->lora = lora_of(*plan.workload.lora, engine.run.lora_alpha);
  check_save(engine);
  return engine;
}

}  // namespace shardplan::validator
