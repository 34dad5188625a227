// What compiled steps keep and need, beside Inductor's own allocations: its wrappers, run with
// kernels that do nothing (measure/saved_by_compile.py, measure/compiled).
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::compiled_replay_test {
namespace {

Json job_of(const Json& c) {
  const bool f32 = c.value("dtype", "bfloat16") == "float32";
  const bool blocks = c.contains("scope");  // in a loop of one's own
  Json job = Json::parse(R"({"schema": "shardplan.job/1", "cluster": "1xH100-SXM5-80GB",
                             "framework": {"name": "single"}, "trainer": "hf_trainer",
                             "compile": true, "optimizer": {"name": "adamw"}, "attention": "sdpa"})");
  job["model"] = c.at("config");
  if (c.at("config").at("model_type") == "bloom") job["attention"] = "eager";  // has no other
  job["workload"] = {{"kind", "train"},
                     {"method", "full"},
                     {"micro_batch", c.at("batch")},
                     {"sequence_length", c.at("length")},
                     {"gradient_accumulation", c.value("accumulation", 1)}};
  const char* preset = !c.value("amp", true) ? "fp32" : f32 ? "bf16-autocast" : "bf16-pure";
  job["precision"] = {{"preset", preset}, {"linear", c.value("linear", "bf16")}};
  const Json policy = c.value("checkpointing", Json("none"));
  job["checkpointing"] = policy == true ? Json("full") : policy;
  if (c.contains("kernels")) job["kernels"] = c.at("kernels");
  if (c.contains("lora")) {
    job["workload"]["method"] = "lora";
    job["workload"]["lora"] = c.at("lora");
    if (!c.at("lora").contains("quantization"))
      job["workload"]["lora"]["quantization"] = "nf4_double";
  }
  if (blocks) job["trainer"] = "loop";
  if (blocks) job["compile"] = {{"scope", "block"}};
  return job;
}

/// Shares of what Inductor allocates: at the end of the forward pass, and at both peaks.
struct Errors {
  double kept = 0, peak = 0, forward = 0;
};

Errors errors_of(const Json& replay, const HardwareCatalog& hardware) {
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(job_of(replay.at("case")), "saved.json", context);
  const Estimate e = estimate(job.model, job.plan, load_calibration(), ReservedMemory::ratio);
  const auto bytes = [&](Phase phase) { return e.phases[static_cast<std::size_t>(phase)]; };
  const std::int64_t states = bytes(Phase::step).end;  // parameters and what the optimizer keeps
  const auto share = [&](std::int64_t ours, const char* theirs) {
    return static_cast<double>(ours - states) / replay.at(theirs).get<double>() - 1;
  };
  return {share(bytes(Phase::forward).end, "forward_end"),
          share(bytes(Phase::backward).peak, "backward_peak"),
          share(bytes(Phase::forward).peak, "forward_peak")};
}

Json replays_of(const std::string& file) {
  return read_json_file(SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/compiled/" + file);
}

TEST(CompiledReplay, AgreesWithInductor) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("saved.json");
  int count = 0;
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // A replay has no cast of what the model returns, which a Trainer's graph has. Of capped logits
    // it keeps another tensor: what is predicted is what a Trainer's run keeps (test below).
    const bool capped = replay.at("case").at("config").at("model_type") == "gemma2";
    if (!capped) {
      EXPECT_NEAR(errors.kept, 0, 0.002);
    }
    EXPECT_NEAR(errors.peak, 0, 0.006);
    ++count;
  }
  EXPECT_EQ(count, 15);
}

/// Families that no record had compiled, a few layers each, as a Trainer runs them: of 3 layers the
/// errors are those of 24 or so times four.
TEST(CompiledReplay, AgreesWithInductorOverFamilies) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("families.json");
  for (const Json& replay : replays) {
    const Json& c = replay.at("case");
    SCOPED_TRACE(c.at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // StableLM, each second block checkpointed: in chains of fusible operations that are longer
    // than a hundred the partitioner keeps what is at the end (_functorch/partitioners.py,
    // ban_if_long_fusible_chains), here what the norm behind the last such block has centred.
    EXPECT_GT(errors.kept, -0.023);
    EXPECT_LT(errors.kept, 0.011);   // of fp32 weights one 16-bit tensor of rows is not kept
    EXPECT_GT(errors.peak, -0.009);  // ModernBERT
    // With so few layers the gradient of the embeddings comes beside most.
    const bool table = c.at("config").at("model_type") == "falcon" && !c.contains("dtype");
    EXPECT_LT(errors.peak, table ? 0.032 : 0.019);
  }
  EXPECT_EQ(replays.size(), 27U);
}

/// The same with adapters, which leave the graphs as they are.
TEST(CompiledReplay, AgreesWithInductorOverFamiliesWithAdapters) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("families_lora.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.002);
    EXPECT_NEAR(errors.peak, 0, 0.002);
  }
  EXPECT_EQ(replays.size(), 8U);
}

/// DoRA, whose lengths want what the frozen weight and the adapters have made, so that parts of a
/// split are made of those again (GPT-2, Pythia).
TEST(CompiledReplay, AgreesWithInductorOverMagnitudes) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("dora.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // BERT keeps its mask, once: 4 MiB.
    const bool mask = replay.at("case").at("config").at("model_type") == "bert";
    EXPECT_NEAR(errors.kept, 0, mask ? 0.0035 : 0.0005);
    EXPECT_NEAR(errors.forward, 0, mask ? 0.0025 : 0.0005);
    EXPECT_NEAR(errors.peak, 0, mask ? 0.0025 : 0.0005);
  }
  EXPECT_EQ(replays.size(), 5U);
}

/// What a draw of small steps met: relu behind adapters, a bias that autocast does not reach,
/// attention written out, a tied head of aligned words whose loss is a graph of its own; masks of
/// layers that are graphs of their own, each third of them checkpointed, and what those behind such
/// a layer are given; what turns queries and keys behind a norm of all heads.
TEST(CompiledReplay, AgreesWithInductorOverWhatADrawMet) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("drawn.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_GT(errors.kept, -0.009);
    EXPECT_LT(errors.kept, 0.008);
    EXPECT_NEAR(errors.forward, 0, 0.004);
    EXPECT_NEAR(errors.peak, 0, 0.0045);
  }
  EXPECT_EQ(replays.size(), 9U);
}

/// A mask that all layers add to scores in 16 bits, itself in fp32: all but the first keep the
/// probabilities in fp32, as what reads the mask behind a product is not computed again.
TEST(CompiledReplay, AgreesWithInductorOverAMaskThatLayersAdd) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("masked.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.007);
    EXPECT_NEAR(errors.forward, 0, 0.006);
    EXPECT_NEAR(errors.peak, 0, 0.006);
  }
  EXPECT_EQ(replays.size(), 2U);
}

/// Layers that are graphs of their own under autocast, whose norms are in front of their blocks
/// (OPT 125M) or behind them (350M): what begins a graph fuses with nothing.
TEST(CompiledReplay, AgreesWithInductorOverLayersApart) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("layers_apart.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.008);
    EXPECT_NEAR(errors.peak, 0, 0.008);
  }
  EXPECT_EQ(replays.size(), 2U);
}

/// Blocks that are computed again, all of them: tables that two neighbours read, so that one of
/// both makes a part of the other's; StableLM's, which are so long that what the norm behind each
/// has made is kept.
TEST(CompiledReplay, AgreesWithInductorOverBlocksComputedAgain) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("again.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.006);
    // StableLM's blocks begin higher one after the other, which plans do not follow.
    const bool rises = replay.at("case").at("config").at("model_type") == "stablelm";
    EXPECT_GT(errors.peak, rises ? -0.008 : -0.002);
    EXPECT_LT(errors.peak, 0.008);
  }
  EXPECT_EQ(replays.size(), 4U);
}

/// An activation that is written out, between adapters under autocast: more than thirty operations,
/// so that nothing is written over what they read; and blocks that begin lower one by one, beside
/// which more and more buffers wait.
TEST(CompiledReplay, AgreesWithInductorOverLongActivationsBetweenAdapters) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("long_activations.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.013);  // 16 MiB of positions, whatever the batch
    EXPECT_NEAR(errors.peak, 0, 0.009);
  }
  EXPECT_EQ(replays.size(), 1U);
}

/// Logits that are capped, and cast inside of the graph.
TEST(CompiledReplay, KeepsWhatATrainersRunOfGemma2Keeps) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json record = read_json_file(SHARDPLAN_SOURCE_DIR
                                     "/data/measurements/training/single/"
                                     "h100-1x-hf-gemma2-2b-compile-pure-b1-s1024.json");
  JobContext context;
  context.hardware = &hardware;
  const Job job = load_job(record.at("job"), "record.json", context);
  const Estimate e = estimate(job.model, job.plan, load_calibration(), ReservedMemory::ratio);
  const double kept = static_cast<double>(e.phases[static_cast<std::size_t>(Phase::forward)].end);
  const Json& phases = record.at("measured").at("phases");
  EXPECT_NEAR(kept / phases.at("forward_end").get<double>(), 1, 0.002);
}

/// Blocks that are compiled one by one, under policies of checkpointing, and linears in fp8: what
/// is eager around them is counted too.
TEST(CompiledReplay, AgreesWithInductorOverBlocksAndFp8) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("combined.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // In which order Inductor casts gradients by rows and columns is not followed: of two or three
    // layers that is much, and it does not grow with their number.
    const bool by_rows = replay.at("case").value("linear", "") == "fp8-rowwise";
    EXPECT_NEAR(errors.kept, 0, 0.002);
    EXPECT_NEAR(errors.peak, 0, by_rows ? 0.03 : 0.006);
  }
  EXPECT_EQ(replays.size(), 8U);
}

/// The pieces of layers between Liger's functions, and its loss, whose loop Dynamo traces.
TEST(CompiledReplay, AgreesWithInductorOverLiger) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("liger.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.002);
    // Beside blocks the loss is eager: tensors without data have a product's result twice there.
    if (!replay.at("case").contains("scope")) {
      EXPECT_NEAR(errors.forward, 0, 0.002);
    }
    EXPECT_NEAR(errors.peak, 0, 0.006);
  }
  EXPECT_EQ(replays.size(), 9U);
}

/// Heads whose rows are not aligned, as they are where Inductor pads their products: in one graph
/// with the loss, and in one that ends before it.
TEST(CompiledReplay, AgreesWithInductorOverPaddedHeads) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("padded.json");
  for (const Json& replay : replays) {
    SCOPED_TRACE(replay.at("case").at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // Inductor keeps the rows of a table of positions too: 2 MiB, in three layers' 445.
    const bool positions = replay.at("case").at("config").at("model_type") == "gpt2";
    EXPECT_NEAR(errors.kept, 0, positions ? 0.006 : 0.002);
    EXPECT_NEAR(errors.peak, 0, 0.006);
  }
  EXPECT_EQ(replays.size(), 4U);
}

/// With adapters, and with checkpointed blocks, which are eager.
TEST(CompiledReplay, AgreesWithInductorOverLigerWithAdaptersAndCheckpoints) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("liger_more.json");
  for (const Json& replay : replays) {
    const Json& c = replay.at("case");
    SCOPED_TRACE(c.at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.002);
    if (!c.contains("scope")) {
      EXPECT_NEAR(errors.forward, 0, 0.002);
    }
    EXPECT_GT(errors.peak, -0.002);
    // Where attention and not the gate has the peak of a recomputed layer, up to one tensor of
    // queries too much: it does not grow with the number of layers.
    const Json& config = c.at("config");
    const double queries = c.at("batch").get<double>() * c.at("length").get<double>() *
                           config.at("num_attention_heads").get<double>() *
                           config.value("head_dim", 64) * 2;
    const double most = c.contains("checkpointing") ? queries + 1e5 : 0;
    EXPECT_LT(errors.peak * replay.at("backward_peak").get<double>(), most + 1e6);
  }
  EXPECT_EQ(replays.size(), 9U);
}

TEST(CompiledReplay, AgreesWithInductorOverFourBits) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("nf4.json");
  for (const Json& replay : replays) {
    const Json& c = replay.at("case");
    SCOPED_TRACE(c.at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    // What enters the last norm is made again with the last block.
    EXPECT_NEAR(errors.kept, 0, 0.0025);
    // In which order Inductor makes a block again is not followed: a little too much.
    EXPECT_GT(errors.peak, -0.002);
    EXPECT_LT(errors.peak, c.contains("checkpointing") ? 0.018 : 0.006);
  }
  EXPECT_EQ(replays.size(), 6U);
}

/// The pieces between functions that Dynamo leaves out; checkpointed blocks are eager.
TEST(CompiledReplay, AgreesWithInductorOverEightBits) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Json replays = replays_of("int8.json");
  for (const Json& replay : replays) {
    const Json& c = replay.at("case");
    SCOPED_TRACE(c.at("name").get<std::string>());
    const Errors errors = errors_of(replay, hardware);
    EXPECT_NEAR(errors.kept, 0, 0.002);
    EXPECT_GT(errors.peak, -0.002);
    EXPECT_LT(errors.peak, c.contains("checkpointing") ? 0.015 : 0.002);
  }
  EXPECT_EQ(replays.size(), 3U);
}

}  // namespace
}  // namespace shardplan::compiled_replay_test
