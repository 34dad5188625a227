// Steps that nothing compiles beside what PyTorch allocates for them, run on tensors without data
// (measure/kept_tensors/step_without_gpu.py, measure/eager).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::eager_steps_test {
namespace {

Json step_of(const std::string& name) {
  for (const Json& step :
       read_json_file(SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/eager/steps.json"))
    if (step.at("name") == name) return step;
  ADD_FAILURE() << name;
  return {};
}

/// The phase that is furthest off, as a share of the whole peak. What is there before the first
/// step is not asked: workspaces come with it.
double worst_error(const Json& step) {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(step.at("job"), "step.json", context);
  const Estimate e = estimate(job.model, job.plan, load_calibration(), ReservedMemory::simulated);
  const Json& phases = step.at("phases");
  double worst = 0, whole = 0;
  const auto compare = [&](const char* name, std::int64_t ours) {
    const auto theirs = phases.at(name).get<double>();
    whole = std::max(whole, theirs);
    worst = std::max(worst, std::abs(static_cast<double>(ours) - theirs));
  };
  const auto both = [&](Phase phase, const char* peak, const char* end) {
    compare(peak, e.phases[static_cast<std::size_t>(phase)].peak);
    compare(end, e.phases[static_cast<std::size_t>(phase)].end);
  };
  both(Phase::forward, "forward_peak", "forward_end");
  both(Phase::backward, "backward_peak", "backward_end");
  both(Phase::step, "step_peak", "step_end");
  return worst / whole;
}

/// OPT-350M norms behind its sublayers: under autocast its blocks give one another fp32, and the
/// embeddings give the first one 16 bits.
TEST(EagerSteps, FirstBlocksHaveAnInputOfTheirOwnType) {
  for (const char* name : {"opt-350m-4-layers", "opt-350m-4-layers-lora",
                           "opt-350m-4-layers-offload", "opt-350m-4-layers-dora-offload"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

TEST(EagerSteps, FirstBlocksKeepTheirPlaceAmongCheckpointedOnes) {
  for (const char* name : {"opt-350m-5-layers-every2", "opt-350m-5-layers-count2"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// BLOOM's blocks return the attention's probabilities beside their output, and the scores have a
/// name until they do.
TEST(EagerSteps, ProbabilitiesOutliveTheBlockThatReturnsThem) {
  EXPECT_LT(worst_error(step_of("bloom-3-layers-checkpointed")), 0.002);
  EXPECT_LT(worst_error(step_of("gpt-neo-4-layers-checkpointed")), 0.003);
}

/// peft's word for all linears means what stands between an encoder's blocks and its vocabulary.
TEST(EagerSteps, HeadsOfEncodersAreAdapted) {
  for (const char* name :
       {"bert-4-layers-lora", "electra-4-layers-dora", "modernbert-4-layers-lora"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// So do they with a mask, in fp32 where autocast leaves the mask in that.
TEST(EagerSteps, MaskedScoresOutliveTheSoftmax) {
  EXPECT_LT(worst_error(step_of("bloom-4-layers-nf4-checkpointed")), 0.002);
}

/// A policy's list of products has none of bitsandbytes' operators.
TEST(EagerSteps, PoliciesKeepNoProductsInFourBits) {
  for (const char* name :
       {"qwen3-4-layers-nf4-selective-op", "distilroberta-3-layers-nf4-selective-op"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// Frozen embeddings that are told to need a gradient: the norm behind them keeps its input.
TEST(EagerSteps, NormsBehindToldEmbeddingsKeepTheirInput) {
  for (const char* name : {"roberta-4-layers-selective-op-lora", "distilbert-4-layers-dora-every2",
                           "deberta-3-layers-lora-checkpointed", "bloom-5-layers-dora-every2"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// The forward pass of a decoder has a name for what its embeddings return until it is over: with
/// frozen embeddings nothing else holds it behind the first block, nor where checkpoints send their
/// inputs to the host.
TEST(EagerSteps, EmbeddingsAreNamedUntilTheModelReturns) {
  for (const char* name :
       {"llama-3-layers-liger-lora", "llama-3-layers-liger-checkpointed-offload"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// DoRA's update has a graph, whose unit matrix lives as long as the update has a name: in passes
/// that save, not in a checkpointed forward pass. Magnitudes' gradients are summed first.
TEST(EagerSteps, UpdatesOfDoraKeepWhatTheirGraphSaved) {
  EXPECT_LT(worst_error(step_of("llama-3-layers-liger-dora")), 0.002);
  EXPECT_LT(worst_error(step_of("qwen3-3-layers-liger-dora-checkpointed")), 0.003);
}

/// A convolution's node keeps its input though its weight is frozen.
TEST(EagerSteps, FrozenConvolutionsKeepTheirInput) {
  EXPECT_LT(worst_error(step_of("lfm2-3-layers-lora")), 0.002);
}

/// Falcon's linears multiply by a view of their weight, whose copies autocast does not cache.
TEST(EagerSteps, ViewsOfWeightsAreNotCached) {
  EXPECT_LT(worst_error(step_of("falcon-rw-3-layers-autocast-checkpointed")), 0.003);
}

/// Falcon's biases are added behind the product: their gradients are summed before it is undone.
TEST(EagerSteps, AddedBiasesAreSummedBeforeTheProduct) {
  EXPECT_LT(worst_error(step_of("falcon-rw-checkpointed")), 0.002);
}

/// Gemma's embeddings scale what they look up themselves: a hook on them tells what they return to
/// need a gradient, and the rows of the table go.
TEST(EagerSteps, ScaledEmbeddingsAreToldAsTheirModuleReturnsThem) {
  EXPECT_LT(worst_error(step_of("gemma-2b-4-layers-liger-fp4-checkpointed")), 0.002);
}

/// bitsandbytes' linears have a name for their input in the type of the product until they return,
/// and cast their biases to it.
TEST(EagerSteps, LinearsInFourBitsNameWhatTheyCast) {
  EXPECT_LT(worst_error(step_of("phi-4-mini-4-layers-liger-nf4-checkpointed")), 0.002);
  EXPECT_LT(worst_error(step_of("phi-2-4-layers-dora-nf4")), 0.002);
}

/// Sliding layers are given a boolean mask, which the model's forward holds, and checkpoints too.
TEST(EagerSteps, SlidingLayersShareABooleanMask) {
  for (const char* name :
       {"mistral-3-layers-liger-autocast-nf4", "gemma-3-270m-4-layers-liger-every3"})
    EXPECT_LT(worst_error(step_of(name)), 0.002) << name;
}

/// T5's position biases are a name of the stack's forward.
TEST(EagerSteps, PositionBiasesGoWithTheirStack) {
  EXPECT_LT(worst_error(step_of("t5-base-3-layers-autocast")), 0.002);
}

/// What steps do not split off blocks counts beside weights in four bits too.
TEST(EagerSteps, RestsOfBlocksCountBesidePackedWeights) {
  EXPECT_LT(worst_error(step_of("qwen3-4b-4-layers-nf4")), 0.002);
}

}  // namespace
}  // namespace shardplan::eager_steps_test
