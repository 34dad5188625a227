// Steps of HF Trainer, of QLoRA and in fp8 on an H100 or two H200, each predicted before it ran
// (measure/predictions).
#include "load/calibration.h"
#include "peak_errors.h"

namespace shardplan::trainer_records_test {
namespace {

bool has_adapters(const Record& r) {
  return r.job.plan.workload.lora.has_value();
}

double mean_time_error(const RecordList& list) {
  const Calibration calibration = load_calibration();
  double sum = 0;
  for (const Record& r : list.records) {
    const Estimate e = estimate(r.job.model, r.job.plan, calibration, ReservedMemory::ratio);
    sum += std::abs(*r.measured[index_of(Figure::step_seconds)] / e.time.step_seconds - 1);
  }
  return sum / static_cast<double>(list.records.size());
}

TEST(TrainerRecords, HoldsThePeaksOfQuantizedTraining) {
  expect_within(peak_errors(records_asked_for({"quantized"})), 14, 0.04, 0.13);
}

TEST(TrainerRecords, HoldsThePeaksOfPlainTrainer) {
  expect_within(peak_errors(records_asked_for({"trainers"})), 10, 0.06, 0.2);
}

TEST(TrainerRecords, HoldsThePeaksOfFp8) {
  expect_within(peak_errors(records_asked_for({"fp8", "fp8_more"})), 11, 0.05, 0.35);
}

TEST(TrainerRecords, HoldsThePeaksOfAdapters) {
  expect_within(peak_errors(records_asked_for({"adapters"})), 3, 0.02, 0.03);
}

TEST(TrainerRecords, HoldsThePeaksOfCheckpointingPolicies) {
  expect_within(peak_errors(records_asked_for({"policies"})), 6, 0.05, 0.17);
}

TEST(TrainerRecords, HoldsThePeaksOfFusedKernels) {
  RecordList list = records_asked_for({"fused"});
  std::erase_if(list.records, [](const Record& r) { return has_adapters(r); });
  expect_within(peak_errors(list), 13, 0.1, 0.4);
}

TEST(TrainerRecords, HoldsThePeaksOfFusedKernelsWithAdapters) {
  RecordList list = records_asked_for({"fused"});
  std::erase_if(list.records, [](const Record& r) { return !has_adapters(r); });
  expect_within(peak_errors(list), 1, 0.6, 0.6);
}

// 19 predicted before they ran, and six with which the model was made. Two taught it something.
TEST(TrainerRecords, HoldsThePeaksOfCompiledSteps) {
  expect_within(peak_errors(records_asked_for({"compiled", "compiled_known"})), 25, 0.3, 1.45);
}

// On two GPUs: DDP, whose graphs Dynamo cuts, and FSDP2 block by block. The first five of DDP, 6 to
// 11 % off when they ran, taught what Trainer asks of DDP and where graphs are cut.
TEST(TrainerRecords, HoldsThePeaksOfCompiledStepsOnTwoGpus) {
  expect_within(peak_errors(records_asked_for({"compiled_2gpu_ddp"})), 5, 0.35, 1.05);
  expect_within(peak_errors(records_asked_for({"compiled_2gpu_fsdp2"})), 3, 0.02, 0.02);
  expect_within(peak_errors(records_asked_for({"ddp_trainer"})), 5, 0.15, 0.6);
}

TEST(TrainerRecords, HoldsThePeaksOfPoliciesInALoop) {
  expect_within(peak_errors(records_asked_for({"policies_loop"})), 2, 0.05, 0.1);
}

// Low by 40 to 180 MiB that stay after the step (docs/evidence/measurements.md).
TEST(TrainerRecords, HoldsThePeaksOfNetworksThatReadImages) {
  expect_within(peak_errors(records_asked_for({"images"})), 12, 0.2, 0.58);
}

// All low; Llama 4's frozen tower was found with its record in view.
TEST(TrainerRecords, HoldsThePeaksOfPairsOfTowersAndOfLlama4) {
  expect_within(peak_errors(records_asked_for({"more_models"})), 10, 0.72, 1.5);
}

/// Inductor times on the GPU whether the head's products are padded; the larger need is counted
/// (compiled/padding.h), and answers say so.
bool timing_decides(const Record& r) {
  return r.job.plan.compiles_whole() && r.job.model.facts.vocabulary % 8 != 0;
}

// Drawn by a seed (measure/draw_cases.py). As predicted 0.82 % off in the mean and 7.04 at most:
// they taught that fp8 takes autocast's weights as they are.
TEST(TrainerRecords, HoldsThePeaksOfDrawnRuns) {
  const RecordList drawn = records_asked_for({"drawn_1gpu"});
  PeakErrors known, timed;
  for (const Record& r : drawn.records) (timing_decides(r) ? timed : known).add(r);
  expect_within(known, 38, 0.15, 0.75);
  // GPT-2 is 1.1 % too high, 0.68 with one copy of its head's gradient: the timing did without the
  // other there, and had both in runs of GPT-2 medium. BERT with every third block checkpointed is
  // 1.0 % too high: a block that ends with a norm is taken to keep what it hands to a checkpointed
  // one, where PyTorch makes it again from what the norm has kept.
  expect_within(timed, 2, 1.06, 1.1);
}

// Drawn from more families. As predicted RoBERTa, compiled, was 6.0 % too low (compiled/padding.h).
TEST(TrainerRecords, HoldsThePeaksOfRunsDrawnFromMoreFamilies) {
  PeakErrors known, replayed;
  for (const Record& r : records_asked_for({"drawn_wider_1gpu"}).records)
    (r.job.plan.records_graphs() ? replayed : known).add(r);
  expect_within(known, 30, 0.13, 1.13);
  // CUDA graphs with adapters and checkpoints, as predicted 46 % too high. What the graphs' pool
  // reserves is 22 % too low.
  expect_within(replayed, 1, 0.02, 0.02);
}

// Drawn once more. As predicted ModernBERT and DistilBERT, compiled, were 5.5 and 2.9 % too low.
TEST(TrainerRecords, HoldsThePeaksOfRunsDrawnOnceMore) {
  PeakErrors compiled, known;
  for (const Record& r : records_asked_for({"drawn_again_1gpu"}).records)
    (r.job.plan.compiles_whole() ? compiled : known).add(r);
  expect_within(known, 26, 0.08, 1.02);
  expect_within(compiled, 8, 0.3, 1.02);
}

// Drawn a third time. As predicted GPT-2 with DoRA was 10.2 % too low (a bias that is taken off in
// the wider type), RoBERTa with checkpoints 2.0 too low and in fp32 28.5 too high.
TEST(TrainerRecords, HoldsThePeaksOfRunsDrawnAThirdTime) {
  PeakErrors compiled, known;
  for (const Record& r : records_asked_for({"drawn_third_1gpu"}).records)
    (r.job.plan.compiles_whole() ? compiled : known).add(r);
  expect_within(known, 19, 0.035, 0.2);
  // OPT with adapters was 4.4 % too high until a relu kept bits, RoBERTa in fp32 2.8.
  expect_within(compiled, 19, 0.2, 0.59);
}

/// Beside fifteen other runs on the GPU both products of an unaligned head timed faster with copies
/// of the gradient; in nine such runs in fp32, and in those alone, one did.
bool timed_otherwise(const Record& r) {
  for (const char* name : {"distilbert-base-uncased-3-layers-compile-fp32-b12-s512",
                           "distilroberta-base-3-layers-compile-fp32-ckpt-b8-s384",
                           "xlm-roberta-base-3-layers-compile-autocast-ckpt-every2-b6-s512"})
    if (r.name.ends_with(name)) return true;
  return false;
}

// Three to six layers each, so that what is missed in a layer shows. As predicted GPT-2 in CUDA
// graphs was 82 % too high, seven in fp32 -13.6 to +14 % off, Falcon with adapters -3.4.
TEST(TrainerRecords, HoldsThePeaksOfSmallCompiledSteps) {
  PeakErrors known, timed;
  for (const Record& r :
       records_asked_for({"compiled_small_h200", "compiled_small_more_h200"}).records)
    (timed_otherwise(r) ? timed : known).add(r);
  expect_within(known, 56, 0.27, 2.48);
  expect_within(timed, 3, 14.9, 17.7);
}

// Drawn a fourth time. As predicted OPT 350M with every third block checkpointed was 5.1 % too low
// (each layer that is not makes a mask of its own), RoBERTa with adapters 1.5.
TEST(TrainerRecords, HoldsThePeaksOfCompiledRunsDrawnAFourthTime) {
  // ELECTRA with checkpoints is 7.7 % too high, ERNIE with every third block checkpointed 1.74 too
  // low: a residual at each border between groups.
  expect_within(peak_errors(records_asked_for({"drawn_fourth_1gpu"})), 17, 0.79, 7.75);
}

// Drawn by compiled_steps/draw_small.py. As predicted, and today: BERT with every third block
// checkpointed is 4.8 % too high, which waits for the table's gradient; SmolLM2 360M the same is
// 1.33 too low.
TEST(TrainerRecords, HoldsThePeaksOfSmallCompiledStepsThatWereSwept) {
  expect_within(peak_errors(records_asked_for({"compiled_swept_h200"})), 22, 0.446, 4.77);
}

// Not compiled, drawn once more; today's figures are those that were predicted.
TEST(TrainerRecords, HoldsThePeaksOfTheFifthDraw) {
  expect_within(peak_errors(records_asked_for({"drawn_fifth_1gpu"})), 12, 0.1, 0.55);
}

// Drawn for two GPUs. As predicted two under FSDP2 were 8 and 10 % too low (what accelerate
// upcasts), one under ZeRO-2 2.1 too high. OPT 350M compiled under DDP is 1.39 too low.
TEST(TrainerRecords, HoldsThePeaksOfADrawForTwoGpus) {
  expect_within(peak_errors(records_asked_for({"drawn_2gpu"})), 12, 0.24, 1.4);
  // Compiled whole under FSDP2, as predicted.
  expect_within(peak_errors(records_asked_for({"compiled_whole_2gpu"})), 3, 0.002, 0.003);
}

// Drawn again, with other seeds. As predicted 0.17 in the mean; Gemma 2 with Liger under FSDP2 was
// 1.66 too low (the order of a unit's parameters under accelerate).
TEST(TrainerRecords, HoldsThePeaksOfASecondDrawForTwoGpus) {
  expect_within(peak_errors(records_asked_for({"drawn_2gpu_more"})), 17, 0.1, 0.46);
}

// A third time; today's figures are those that were predicted.
TEST(TrainerRecords, HoldsThePeaksOfAThirdDrawForTwoGpus) {
  expect_within(peak_errors(records_asked_for({"drawn_again_2gpu"})), 15, 0.16, 0.64);
}

// Eager and DeepSpeed steps, drawn. As predicted GPT-Neo was 0.63 % too low (masks in its class).
TEST(TrainerRecords, HoldsThePeaksOfEagerRunsAndDeepSpeedThatWereDrawn) {
  PeakErrors eager, deepspeed;
  for (const Record& r : records_asked_for({"drawn_eager_1gpu"}).records)
    (traits_of(r.job.plan).has_zero ? deepspeed : eager).add(r);
  // 0.049 until biases were summed behind recomputed inputs: OPT 125M with Lion went from 0.07 to
  // 0.09 % too low, which is what is left of blocks; GPT-2's reserved memory from 15.3 to 0.1.
  expect_within(eager, 18, 0.0493, 0.34);
  // Two of stage 3 without checkpoints are 0.25 and 0.66 % too low: why is not known.
  expect_within(deepspeed, 11, 0.11, 0.67);
}

// Predicted before they ran: CUDA graphs, adapters over micro-batches, odd vocabularies.
TEST(TrainerRecords, ForesawThePeaksOfGraphs) {
  expect_within(peak_errors(records_asked_for({"graphs_judged"})), 8, 0.02, 0.05);
}

// ZeRO-Inference: at every mark 32 MiB are measured more, autograd's workspace, which the measuring
// program makes. As predicted 24.4, 13.7 and -1.7 % off, when
// the passes kept no order of gathers.
TEST(TrainerRecords, HoldsThePeaksOfWeightsThatPassesGather) {
  expect_within(peak_errors(records_asked_for({"inference_gathered"})), 3, 1.96, 3.1);
}

// What the host took was sampled beside their steps (measure/host_sample.py). DeepSpeed's stage 0
// was 19.9 % too high when it ran: PyTorch's AdamW has no flat copy of gradients there.
TEST(TrainerRecords, HoldsThePeaksOfRunsWhoseHostWasSampled) {
  // T5 at four samples +0.29 %, since allocations follow autograd's order.
  expect_within(peak_errors(records_asked_for({"host_beside_h200_1gpu"})), 17, 0.032, 0.29);
  expect_within(peak_errors(records_asked_for({"host_beside_h200_2gpu_deepspeed"})), 10, 0.2, 1.1);
  expect_within(peak_errors(records_asked_for({"host_beside_h200_2gpu_trainer"})), 3, 0.15, 0.4);
  expect_within(peak_errors(records_asked_for({"host_drawn_h200_1gpu"})), 8, 0.02, 0.06);
  // FSDP2 with 16 tokens is 2.6 % too low: 356 MiB, of which 22 are the forward pass's.
  expect_within(peak_errors(records_asked_for({"balance_2gpu"})), 12, 0.35, 2.61);
  expect_within(peak_errors(records_asked_for({"balance_2gpu_deepspeed"})), 2, 0.04, 0.06);
  expect_within(peak_errors(records_asked_for({"pace_h100_1gpu"})), 8, 0.02, 0.06);
  expect_within(peak_errors(records_asked_for({"pace_h100_2gpu_fsdp2"})), 4, 0.02, 0.03);
  expect_within(peak_errors(records_asked_for({"built_on_host"})), 3, 0.04, 0.07);
  expect_within(peak_errors(records_asked_for({"pace_h100_2gpu_deepspeed"})), 5, 0.02, 0.03);
  expect_within(peak_errors(records_asked_for({"pace_h100_2gpu_ddp"})), 3, 0.03, 0.04);
}

TEST(TrainerRecords, HoldsThePeaksOfAdaptersWithAFusedLoss) {
  // They were up to 1.7 % high until the end of a recomputation was known.
  expect_within(peak_errors(records_asked_for({"fused_lora"})), 3, 0.1, 0.23);
  expect_within(peak_errors(records_asked_for({"qlora_sharded"})), 2, 1.2, 2.35);
}

// They judge what histories of allocations taught of checkpoints under compile and of activations
// on the host: GPT-2 large was 6.9 % too high, 0.4 today: its graph ends before the loss. Autocast
// was 1.9 % too low: the head's weight is not sent.
TEST(TrainerRecords, KnowsWhatJudgedCheckpoints) {
  expect_within(peak_errors(records_asked_for({"judged_checkpoints"})), 8, 0.61, 2.55);
}

/// LLM.int8() keeps nearly every column of what a feed-forward has made over random weights
/// (held_at_most).
bool is_known_miss(const Record& r) {
  return r.name.find("-int8-") != std::string::npos;
}

// Where recomputations begin and end, and what waits between compiled blocks. fp8 by rows is 1.35 %
// too low.
TEST(TrainerRecords, HoldsThePeaksOfRecomputations) {
  PeakErrors known, missed;
  for (const Record& r : records_asked_for({"judged_recompute"}).records)
    (is_known_miss(r) ? missed : known).add(r);
  // OPT, whose layers break the graph, was 22 % too high, and 7.0 where its embeddings and its head
  // were taken for one graph.
  expect_within(known, 13, 0.17, 1.36);
  expect_within(missed, 1, 18.1, 18.1);
}

// Kinds of steps over networks that no record had, predicted before they ran. CUDA graphs of
// SmolLM2 360M are 3.0 % too low: what sampled the host left two workspaces of 32 MiB. LLM.int8()
// over random weights is 1.7 % too low: outliers' columns, which the bound has (held_at_most).
TEST(TrainerRecords, HoldsThePeaksOfKindsOverOtherNetworks) {
  expect_within(peak_errors(records_asked_for({"judged_padded", "judged_kinds"})), 28, 0.45, 3.0);
  // EXAONE 4 with Liger, checkpointed, was 6.7 % too low, GPT-2 compiled and checkpointed under
  // autocast 6.5 % too high; Liger with activations on the host is 11 %.
  expect_within(peak_errors(records_asked_for({"judged_kinds_more"})), 23, 0.66, 11.01);
  expect_within(peak_errors(records_asked_for({"judged_edges"})), 7, 0.06, 0.2);
}

// Predicted before they ran. FSDP2's SmolLM3 was 1.3 % too high, and is a reason to know when the
// head's unit gathers ahead.
TEST(TrainerRecords, HoldsThePeaksOfSharedWeights) {
  expect_within(peak_errors(records_asked_for({"tied_judged"})), 6, 0.09, 0.42);
}

// CUDA graphs under DDP and a compiled step of ZeRO-2, predicted before they ran. One of the graphs
// reserved 5.1 % more than was predicted then, 2.7 % today: a gradient of a shared weight is summed
// beside their pool.
TEST(TrainerRecords, HoldsThePeaksOfCompiledEngines) {
  const RecordList ran = records_asked_for({"compiled_engines_2gpu"});
  expect_within(peak_errors(ran), 4, 0.13, 0.38);
  EXPECT_LE(mean_time_error(ran), 0.27);
}

// Stages 1 and 2, where all gradients come at once; stage 3, predicted 2.1 % high, taught that what
// the model returns goes with the loss's graph.
TEST(TrainerRecords, HoldsThePeaksOfCompiledStages) {
  expect_within(peak_errors(records_asked_for({"compiled_engines_1gpu"})), 5, 0.07, 0.23);
  expect_within(peak_errors(records_asked_for({"compiled_engines_more_2gpu"})), 3, 0.39, 1.13);
}

TEST(TrainerRecords, TokensPerSecond) {
  EXPECT_LE(mean_time_error(records_asked_for({"judged_padded", "judged_kinds"})), 0.171);
  EXPECT_LE(mean_time_error(records_asked_for({"judged_kinds_more"})), 0.196);
  EXPECT_LE(mean_time_error(records_asked_for({"quantized"})), 0.08);
  EXPECT_LE(mean_time_error(records_asked_for({"fused", "trainers"})), 0.11);
  EXPECT_LE(mean_time_error(records_asked_for({"fp8", "fp8_more"})), 0.12);
  EXPECT_LE(mean_time_error(records_asked_for({"policies"})), 0.03);
  EXPECT_LE(mean_time_error(records_asked_for({"compiled", "compiled_known"})), 0.08);
  // These and the next five were within 6 % together.
  EXPECT_LE(mean_time_error(records_asked_for({"compiled_2gpu_fsdp2", "ddp_trainer"})), 0.0635);
  // A miss: GPT-2 medium is 21 % too fast. Its head's padded copies are there (its allocated peak
  // is within 0.01 %); it was 1 % too fast while they were timed as unaligned products.
  EXPECT_LE(mean_time_error(records_asked_for({"compiled_2gpu_ddp"})), 0.091);
}

}  // namespace
}  // namespace shardplan::trainer_records_test
