// Tiny networks and runs of them on the host.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/groups.h"
#include "data/batches.h"
#include "device/dry_run.h"
#include "device/random.h"
#include "engine/decoder.h"
#include "engine/perceptron.h"
#include "engine/trainer.h"
#include "kernels/host/crew/host_crew.h"
#include "kernels/host/host_backend.h"
#include "launch/host_memory.h"
#include "launch/ranks.h"

namespace shardplan::validator::testing {

inline DecoderSpec tiny_gpt2() {
  return {.family = "gpt2",
          .layers = 3,
          .hidden = 16,
          .inner = 24,
          .query_heads = 2,
          .key_value_heads = 2,
          .head_dim = 8,
          .vocabulary = 29,
          .positions = 12,
          .norm = NormKind::layer,
          .activation = Activation::gelu_tanh,
          .qkv_bias = true,
          .output_bias = true,
          .mlp_bias = true,
          .tied = true,
          .init_stddev = 0.3F};
}

/// Grouped queries, untied.
inline DecoderSpec tiny_llama() {
  return {.family = "llama",
          .layers = 2,
          .hidden = 16,
          .inner = 20,
          .query_heads = 4,
          .key_value_heads = 2,
          .head_dim = 4,
          .vocabulary = 23,
          .rotary = Rotary{},
          .init_stddev = 0.3F};
}

/// Norms of q and k heads, biases, tied, head_dim that is not hidden / heads.
inline DecoderSpec tiny_qwen3() {
  DecoderSpec s = tiny_llama();
  s.family = "qwen3";
  s.layers = 3;
  s.head_dim = 6;
  s.head_norms = s.tied = s.qkv_bias = true;
  return s;
}

/// 4 experts of which a token goes to two, untied, with a load-balancing loss.
inline DecoderSpec tiny_mixtral() {
  DecoderSpec s = tiny_llama();
  s.family = "mixtral";
  s.inner = 12;
  s.experts = {.count = 4, .per_token = 2, .renormalised = true, .balance = 0.1F};
  return s;
}

/// 8 experts of which a token goes to three, with weights that do not sum to 1; head norms.
inline DecoderSpec tiny_qwen3_moe() {
  DecoderSpec s = tiny_mixtral();
  s.family = "qwen3_moe";
  s.layers = 3;
  s.head_norms = true;
  s.experts = {.count = 8, .per_token = 3};
  return s;
}

/// The same with adapters beside the layers of those names.
inline DecoderSpec adapted(DecoderSpec spec, std::vector<std::string> targets,
                           BaseStore base = BaseStore::values) {
  spec.lora = {.rank = 3, .scale = 1.5F, .targets = std::move(targets), .base = base};
  return spec;
}

/// The same with adapters beside weights of the experts too.
inline DecoderSpec with_experts(DecoderSpec spec, std::vector<std::string> parameters) {
  spec.lora->parameters = std::move(parameters);
  return spec;
}

/// The same with the experts' matrices stored as the base is.
inline DecoderSpec with_quantized_experts(DecoderSpec spec) {
  spec.lora->base_of_experts = true;
  return spec;
}

struct TestRun {
  TrainingOptions options;
  std::int64_t micro_batch = 2, sequence = 5;
  int world = 1;
  Keep keep = Keep::everything;
  int tensor = 1;   ///< of the world, ranks that share each layer
  int context = 1;  ///< ranks that share each sequence
  int experts = 1;  ///< and those that divide the experts of each layer
  double capacity_factor = 0;
  bool keeps_on_host = false;  ///< what blocks keep
  bool late_copies = false;    ///< to the host and back: when something waits for them
  Fp8Recipe fp8 = Fp8Recipe::none;
  std::optional<CheckpointedBlocks> again;  ///< of blocks that keep their inputs alone
  ProductsAgain products_again;             ///< under Keep::products
  StorageOptions storage;                   ///< of states on NVMe
  int data() const { return world / (tensor * context * options.pipeline.stages); }
};

inline std::unique_ptr<Network> make_network(const NetworkSpec& spec, const TestRun& run,
                                             const Groups& of) {
  if (const auto* decoder = std::get_if<DecoderSpec>(&spec))
    return make_decoder(
        *decoder, {run.micro_batch,
                   run.sequence,
                   run.options.dtype,
                   run.keep,
                   {of.tensor().rank(), run.tensor},
                   {of.stages().rank(), run.options.pipeline.stages, run.options.pipeline.chunks},
                   {of.context().rank(), run.context},
                   {of.experts().rank(), run.experts},
                   run.capacity_factor,
                   run.keeps_on_host,
                   run.fp8,
                   run.again,
                   run.products_again});
  return make_perceptron(std::get<MlpSpec>(spec), run.micro_batch, run.options.dtype);
}

/// The same samples of a step for every division into ranks and micro-batches. `rank` among those
/// with other rows, the ones that share sequences next to each other.
class TestBatches final : public BatchSource {
 public:
  TestBatches(const NetworkSpec& spec, const TestRun& run, int rank)
      : spec_(spec), run_(run), rank_(rank) {}

  Batch next(std::int64_t step, std::int64_t micro) override {
    Batch batch;
    for (std::int64_t b = 0; b < run_.micro_batch; ++b) {
      const std::int64_t sample =
          ((step * run_.options.accumulation + micro) * run_.data() + rank_ / run_.context) *
              run_.micro_batch +
          b;
      add_sample(batch, static_cast<std::uint64_t>(sample));
    }
    if (std::holds_alternative<MlpSpec>(spec_)) return batch;
    return rows_of(batch, run_.sequence, {rank_ % run_.context, run_.context});
  }

 private:
  void add_sample(Batch& batch, std::uint64_t sample) const {
    if (const auto* mlp = std::get_if<MlpSpec>(&spec_)) {
      const std::uint64_t label =
          random_bits(1, sample, 0) % static_cast<std::uint64_t>(mlp->widths.back());
      batch.targets.push_back(static_cast<std::int32_t>(label));
      for (std::int64_t i = 0; i < mlp->widths.front(); ++i)
        batch.inputs.push_back(unit_interval(static_cast<std::uint32_t>(
                                   random_bits(2, label, static_cast<std::uint64_t>(i)))) +
                               unit_interval(static_cast<std::uint32_t>(
                                   random_bits(3, sample, static_cast<std::uint64_t>(i)))) /
                                   4);
      return;
    }
    // A chain of tokens that can be learned, with some noise.
    const auto vocabulary = static_cast<std::uint64_t>(std::get<DecoderSpec>(spec_).vocabulary);
    std::uint64_t token = random_bits(4, sample, 0) % vocabulary;
    for (std::int64_t i = 0; i < run_.sequence; ++i) {
      batch.tokens.push_back(static_cast<std::int32_t>(token));
      token =
          (3 * token + 1 + random_bits(5, sample, static_cast<std::uint64_t>(i)) % 2) % vocabulary;
      batch.targets.push_back(static_cast<std::int32_t>(token));
    }
  }

  NetworkSpec spec_;
  TestRun run_;
  int rank_;
};

/// Ranks of a run; late: with copies that are made when something waits for them.
inline MakeRank ranks_of(const TestRun& run) {
  MakeRank make = host_ranks(run.world, 0);
  if (!run.late_copies) return make;
  return [make](int rank) {
    RankDevice device = make(rank);
    device.backend = make_host_backend(0, CopyTime::late);
    return device;
  };
}

/// Runs `body` on every rank with a trainer whose parameters are initialised.
inline void with_trainers(const NetworkSpec& spec, const TestRun& run,
                          const std::function<void(Trainer&, BatchSource&)>& body) {
  run_ranks(0, run.world, ranks_of(run), [&](RankDevice& device) {
    const int rank = device.communicator->rank();
    const auto dry = make_dry_backend([](const StepShapes&) { return 0; });
    const auto alone = make_dry_communicator(rank, run.world);
    const auto* decoder = std::get_if<DecoderSpec>(&spec);
    const ModelDegrees degrees{.tensor = run.tensor,
                               .context = run.context,
                               .stages = run.options.pipeline.stages,
                               .tied_ends = decoder != nullptr && decoder->tied && !decoder->lora,
                               .experts = run.experts,
                               .sparse = decoder != nullptr && decoder->experts};
    const Groups planned_groups(*dry, *alone, degrees);
    const Groups groups(*device.backend, *device.communicator, degrees);
    TestBatches batches(spec, run, groups.data().rank());
    const auto make_trainer = [&](Backend& backend, const Groups& of, Arena& arena,
                                  HostSide* host) {
      return std::make_unique<Trainer>(
          Runtime{backend, of.data(), of.tensor(), of.context(), of.stages(), of.ends(),
                  of.experts(), of.copies(), arena, host},
          make_network(spec, run, of), run.options);
    };
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    Arena plan(0, kMost), pinned(0, kMost), pageable(0, kMost), nvme(0, kMost);
    const auto nobody = make_dry_host();
    HostSide beside{*nobody, pinned, pageable, nvme};
    make_trainer(*dry, planned_groups, plan, &beside)->step(batches);
    const auto cores = make_host_crew({rank, run.world});
    RankHostMemory host(*device.backend, *cores,
                        {pinned.extent(), pageable.extent(), nvme.extent()}, run.storage);
    Arena arena(device.backend->allocate(plan.extent()), plan.extent());
    const auto trainer = make_trainer(*device.backend, groups, arena, host.side());
    trainer->initialise();
    body(*trainer, batches);
    trainer->finish();
  });
}

inline std::vector<StepResult> train(const NetworkSpec& spec, const TestRun& run, int steps) {
  std::vector<StepResult> results;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    for (int i = 0; i < steps; ++i) {
      const StepResult result = trainer.step(batches);
      const Runtime& rt = trainer.runtime();
      if (rt.ranks.rank() == 0 && rt.tensor.rank() == 0 && rt.stages.rank() == 0)
        results.push_back(result);
    }
  });
  return results;
}

/// Losses within `tolerance` of what they are, norms within ten times that, and as many rows
/// dropped.
inline void expect_alike(const std::vector<StepResult>& whole,
                         const std::vector<StepResult>& divided, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(whole.size(), divided.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].loss, divided[i].loss, tolerance * whole[i].loss)
        << what << ", step " << i + 1;
    EXPECT_NEAR(whole[i].gradient_norm, divided[i].gradient_norm,
                10 * tolerance * whole[i].gradient_norm)
        << what << ", step " << i + 1;
    EXPECT_EQ(whole[i].dropped, divided[i].dropped) << what << ", step " << i + 1;
  }
}

}  // namespace shardplan::validator::testing
