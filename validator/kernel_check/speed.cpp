#include "kernel_check/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "base/diagnostic.h"
#include "base/format.h"
#include "comm/sole_rank.h"
#include "device/dry_run.h"
#include "engine/decoder.h"
#include "engine/trainer.h"
#include "hardware/gpu_names.h"
#include "kernel_check/timed_backend.h"
#include "kernels/cuda.h"
#include "load/catalog.h"
#include "load/hardware.h"
#include "model/read_spec.h"

namespace shardplan::validator {
namespace {

constexpr int kWarmUp = 3;

/// The same random tokens again and again: drawing new ones would be timed too.
class RandomTokens final : public BatchSource {
 public:
  RandomTokens(std::int64_t rows, std::int64_t vocabulary) {
    std::minstd_rand random(1);
    std::uniform_int_distribution<std::int32_t> ids(0, static_cast<std::int32_t>(vocabulary) - 1);
    for (std::vector<std::int32_t>* list : {&batch_.tokens, &batch_.targets}) {
      list->resize(static_cast<std::size_t>(rows));
      std::generate(list->begin(), list->end(), [&] { return ids(random); });
    }
  }

  Batch next(std::int64_t /*step*/, std::int64_t /*micro_batch*/) override { return batch_; }

 private:
  Batch batch_;
};

DecoderSpec spec_of(const SpeedOptions& options) {
  const auto model = find_model(options.model);
  if (!model) {
    throw InputError({.file = "<command line>",
                      .key = "model",
                      .message = "unknown model '" + options.model + "'",
                      .nearest = nearest_model(options.model)});
  }
  const NetworkSpec spec =
      read_spec(model->config, {"<command line>", "model", ""}, options.sequence);
  return std::get<DecoderSpec>(spec);
}

TrainingOptions training_of(const SpeedOptions& options) {
  TrainingOptions training;
  training.dtype = options.dtype;
  if (options.master && options.dtype != DType::f32) training.optimizer.master = DType::f32;
  training.optimizer.states = options.master ? DType::f32 : options.dtype;
  return training;
}

/// Floating-point operations of a token that MFU counts: each product once forward and twice
/// backward, the causal half of attention.
double flops_of_token(const DecoderSpec& spec, std::int64_t sequence) {
  const auto query_width = static_cast<double>(spec.query_heads * spec.head_dim);
  const auto packed =
      static_cast<double>((spec.query_heads + 2 * spec.key_value_heads) * spec.head_dim);
  const auto hidden = static_cast<double>(spec.hidden);
  // Of experts those that a token goes to, and the router.
  const auto mlp = static_cast<double>(spec.up_width() + spec.inner);
  const double sparse = spec.experts ? static_cast<double>(spec.experts->per_token) * mlp +
                                           static_cast<double>(spec.experts->count)
                                     : mlp;
  const double weights = hidden * (packed + query_width + sparse);
  const double attention = query_width * static_cast<double>(sequence);
  return 6.0 * (static_cast<double>(spec.layers) * (weights + attention) +
                hidden * static_cast<double>(spec.vocabulary));
}

/// Peak rates of the GPU at hand, by the catalogue.
Rates rates_of(const std::string& device, DType dtype) {
  const HardwareCatalog catalog = load_hardware_catalog();
  const GpuChoice choice = choose_gpu(device, catalog);
  if (choice.gpu == nullptr) throw InputError({.message = "unknown GPU '" + device + "'"});
  const Gpu& gpu = choice.gpu->gpu;
  const auto& flops = dtype == DType::f32 ? gpu.peak[PeakRate::fp32] : gpu.peak[PeakRate::bf16];
  return {.flops = flops.value_or(0), .bandwidth = gpu.memory_bandwidth.value_or(0)};
}

/// Bytes that a step needs: the same step on no device.
std::int64_t dry_extent(const DecoderSpec& spec, const DecoderRun& run,
                        const TrainingOptions& training, BatchSource& batches) {
  const auto device = make_dry_backend(cuda_workspace_bytes);
  const auto ranks = make_dry_communicator(0, 1);
  Arena arena(0, std::numeric_limits<std::int64_t>::max());
  Trainer trainer({*device, *ranks, *ranks, *ranks, *ranks, *ranks, *ranks, *ranks, arena},
                  make_decoder(spec, run), training);
  trainer.initialise();
  trainer.step(batches);
  return arena.extent();
}

std::string family_table(const std::map<std::string, FamilyTime>& families, double step_seconds) {
  std::string text = fmt::format("  {:<26}{:>6}{:>10}{:>8}{:>10}{:>8}{:>8}\n", "", "calls", "ms",
                                 "share", "TFLOP/s", "TB/s", "light");
  double sum = 0;
  double light = 0;
  for (const auto& [name, family] : families) {
    sum += family.seconds;
    light += family.light_seconds;
    text += fmt::format("  {:<26}{:>6}{:>10.2f}{:>7.1f}%{:>10.0f}{:>8.2f}{:>7.0f}%\n", name,
                        family.calls, 1e3 * family.seconds, 100 * family.seconds / step_seconds,
                        1e-12 * family.work.flops / family.seconds,
                        1e-12 * family.work.bytes / family.seconds,
                        100 * family.light_seconds / family.seconds);
  }
  return text + fmt::format("  {:<26}{:>6}{:>10.2f}{:>7.1f}%   at the speed of light {:.2f} ms\n",
                            "all", "", 1e3 * sum, 100 * sum / step_seconds, 1e3 * light);
}

}  // namespace

std::string speed_report(const SpeedOptions& options) {
  const DecoderSpec spec = spec_of(options);
  DecoderRun run{options.micro_batch, options.sequence, options.dtype, options.keep};
  run.fp8 = options.fp8;
  const TrainingOptions training = training_of(options);
  RandomTokens batches(options.micro_batch * options.sequence, spec.vocabulary);
  const std::int64_t extent = dry_extent(spec, run, training, batches);

  const auto device = make_cuda_backend(0);
  const std::string name = device->info().name;
  const Rates rates = rates_of(name, options.dtype);
  TimedBackend timed(*device, rates);
  const auto ranks = make_sole_communicator(timed);
  Arena arena(timed.allocate(extent), extent);
  Trainer trainer({timed, *ranks, *ranks, *ranks, *ranks, *ranks, *ranks, *ranks, arena},
                  make_decoder(spec, run), training);
  trainer.initialise();

  std::vector<double> seconds;
  double loss = 0;
  for (int step = 0; step < kWarmUp + options.steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    loss = trainer.step(batches).loss;
    timed.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (step >= kWarmUp) seconds.push_back(taken.count());
  }
  const std::int64_t used = timed.used_bytes();
  timed.start();
  trainer.step(batches);
  const auto families = timed.stop();

  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto tokens = static_cast<double>(options.micro_batch * options.sequence);
  const double mfu = tokens / median * flops_of_token(spec, options.sequence) / rates.flops;
  std::string text = fmt::format(
      "{} {} × {}, {}{}, {}\n"
      "  {:.2f} ms per step (least {:.2f}, most {:.2f}, {} steps), {} tokens/s, MFU {:.1f} %\n"
      "  arena {}, device {}; loss {:.4f}\n",
      options.model, options.micro_batch, options.sequence, shardplan::name_of(options.dtype),
      options.master ? " with fp32 master" : " throughout", name, 1e3 * median,
      1e3 * seconds.front(), 1e3 * seconds.back(), seconds.size(),
      format_count(static_cast<std::int64_t>(tokens / median)), 100 * mfu, format_bytes(extent),
      format_bytes(used), loss);
  for (const Overhead& overhead : timed.overheads()) {
    text += fmt::format("  {}: {}\n", overhead.name, format_bytes(overhead.bytes));
  }
  return text + family_table(families, median);
}

}  // namespace shardplan::validator
