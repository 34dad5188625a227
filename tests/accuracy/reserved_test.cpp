// What the process holds of the GPU, against every training record of the frameworks whose blocks
// are in several streams' pools: blocks there may wait for another stream before they are free.
// docs/explanation/allocator.md has the figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "asked_records.h"
#include "load/hardware.h"
#include "optimizers/description.h"
#include "questions/accuracy.h"
#include "trainers/description.h"

namespace shardplan::reserved_test {
namespace {

/// Errors in percent: the mean of all, of their absolute values, and the largest.
struct Limit {
  std::string_view group;
  std::int64_t records;  ///< at least
  double bias, mean, largest;
};

constexpr std::array kLimits{
    Limit{"fsdp1", 12, 2.0, 2.5, 3.8},
    Limit{"fsdp2", 28, 0.2, 0.2, 1.26},
    Limit{"deepspeed stage 1", 15, 0.3, 1.2, 8.5},
    Limit{"deepspeed stage 2", 32, 0.2, 0.7, 4.6},
    // -1.01, from -0.79, and the rest 1.6 and 5.0 from 3.4 and 11.5, since it follows DeepSpeed's
    // coordinator: errors that cancelled are gone (docs/evidence/measurements.md, "ZeRO-3"). 5.10,
    // from 4.98, since attention is timed out of the cache and embeddings keep their name; 1.5 in
    // the mean, from 1.7 (docs/evidence/accuracy.md, "Bounds").
    Limit{"deepspeed stage 3", 39, 1.02, 1.5, 5.1},
};

/// Quantized bases in shards have two records; the allocated peak of FSDP2's is missed already
/// (TrainerRecords.KnowsItsMisses).
bool shards_few_bits(const Record& r) {
  const auto& lora = r.job.plan.workload.lora;
  return lora && lora->base != Quantization::none;
}

/// Those of two H100, and of HF Trainer on whichever two GPUs, which ran after the limits were set.
bool ran_on_two_later(const Record& r) {
  const Cluster& cluster = r.job.plan.cluster;
  const bool later =
      cluster.gpu.name.starts_with("H100") || r.job.plan.trainer->name == "hf_trainer";
  return later && cluster.gpus_per_node * cluster.nodes == 2;
}

/// The same of two H200, and of compiled steps on one H100.
bool ran_later(const Record& r) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const Record& one :
         records_asked_for({"host_2gpu_deepspeed", "compiled_engines_1gpu", "drawn_eager_1gpu"})
             .records)
      all.insert(one.name);
    return all;
  }();
  return ran_on_two_later(r) || names.contains(r.name);
}

bool keeps_tensors_on_host(const Record& r) {
  const ZeroOptions& zero = r.job.plan.framework.deepspeed.zero;
  return zero.offload_optimizer.device != OffloadDevice::none ||
         zero.offload_param.device != OffloadDevice::none;
}

bool gathers_in_8_bits(const Record& r) {
  return r.job.plan.framework.fsdp2.float8_all_gather != Float8Gather::none;
}

/// A fp32 model under stage 2 whose optimizer DeepSpeed makes itself.
bool updates_by_its_own(const Record& r) {
  const DeepSpeedOptions& options = r.job.plan.framework.deepspeed;
  return options.zero.stage == 2 && !options.program_makes_optimizer() &&
         options.model_dtype != DType::bf16 && !keeps_tensors_on_host(r);
}

bool is_drawn_again(const Record& r) {
  static const RecordList list = records_asked_for({"drawn_2gpu_more", "drawn_built_on_host"});
  return std::ranges::any_of(list.records,
                             [&](const Record& drawn) { return drawn.name == r.name; });
}

/// Under FSDP2 as the measuring programs ran it, the model built on the GPU, and with little that
/// lies in what building left.
bool has_few_states(const Record& r) {
  const Plan& plan = r.job.plan;
  const bool few = plan.workload.lora || plan.optimizer.kind->name == "sgd";
  return few && plan.framework.kind == FrameworkKind::fsdp2;
}

bool judges_shared_weights(const Record& r) {
  static const RecordList list = records_asked_for({"tied_judged", "built_on_host"});
  return std::ranges::any_of(list.records,
                             [&](const Record& judge) { return judge.name == r.name; });
}

enum class Kind {
  known,
  few_bits,
  gathers_in_8_bits,
  holds_logits,
  balanced,
  paced,
  shared_weights,
  later,
  later_own,
  later_host,
  drawn,
  few_states
};

Kind kind_of(const Record& r) {
  if (shards_few_bits(r)) return Kind::few_bits;
  if (gathers_in_8_bits(r)) return Kind::gathers_in_8_bits;
  if (r.job.plan.trainer->keeps_last_logits) return Kind::holds_logits;
  if (r.name.ends_with("-pace")) return Kind::paced;
  if (!ran_later(r)) return Kind::known;
  if (r.name.ends_with("-balance")) return Kind::balanced;
  if (judges_shared_weights(r)) return Kind::shared_weights;
  if (has_few_states(r)) return Kind::few_states;
  if (is_drawn_again(r)) return Kind::drawn;
  if (updates_by_its_own(r)) return Kind::later_own;
  return keeps_tensors_on_host(r) ? Kind::later_host : Kind::later;
}

Accuracy errors_of_records(Kind kind) {
  std::vector<std::string> files;
  for (const char* framework : {"fsdp1", "fsdp2", "deepspeed"})
    for (const auto& entry : std::filesystem::directory_iterator(
             std::string(SHARDPLAN_SOURCE_DIR "/data/measurements/training/") + framework))
      files.push_back(entry.path().string());
  RecordList list = load_records(files, load_hardware_catalog());
  std::erase_if(list.records, [&](const Record& r) { return kind_of(r) != kind; });
  return compare_with_records(list, AccuracyGroup::framework);
}

TEST(Reserved, IsAsGoodAsItWasWhereStreamsShareBlocks) {
  const Accuracy accuracy = errors_of_records(Kind::known);
  EXPECT_TRUE(accuracy.bad.empty()) << to_string(accuracy.bad.front());
  for (const Limit& limit : kLimits) {
    const auto group = std::find_if(accuracy.groups.begin(), accuracy.groups.end(),
                                    [&](const GroupSummary& g) { return g.name == limit.group; });
    ASSERT_NE(group, accuracy.groups.end()) << limit.group;
    const ErrorSummary& s = group->figures[index_of(Figure::reserved)];
    EXPECT_GE(s.count, limit.records) << limit.group;
    EXPECT_LE(100 * std::abs(s.mean_signed), limit.bias) << limit.group;
    EXPECT_LE(100 * s.mean_absolute, limit.mean) << limit.group;
    EXPECT_LE(100 * std::abs(s.largest), limit.largest) << limit.group << ": " << s.worst;
  }
}

TEST(Reserved, KnowsWhatItMissesOfQuantizedShards) {
  for (const GroupSummary& group : errors_of_records(Kind::few_bits).groups) {
    const ErrorSummary& s = group.figures[index_of(Figure::reserved)];
    // FSDP2 -3.6 since allocations follow autograd's order, from -2.2; stage 3 +6.4 since it
    // follows DeepSpeed's coordinator, from +1.3.
    EXPECT_GE(100 * s.largest, -3.62) << group.name;
    EXPECT_LE(100 * s.largest, 6.4) << group.name;
  }
}

/// Scales made ahead and compiled: 2.64 % too low, for a cause that is not known. The bound holds
/// it.
TEST(Reserved, KnowsWhatItMissesOfGathersIn8Bits) {
  const Accuracy accuracy = errors_of_records(Kind::gathers_in_8_bits);
  ASSERT_EQ(accuracy.groups.size(), 1);
  const ErrorSummary& s = accuracy.groups.front().figures[index_of(Figure::reserved)];
  EXPECT_GE(s.count, 3);
  EXPECT_LE(100 * std::abs(s.largest), 2.7) << s.worst;
}

/// OpenRLHF's supervised trainer (docs/evidence/records.md): up to 17 % too low for models of half
/// a billion parameters, for a cause that is not known.
TEST(Reserved, KnowsWhatItMissesOfTrainersThatHoldLogits) {
  std::int64_t records = 0;
  for (const GroupSummary& group : errors_of_records(Kind::holds_logits).groups) {
    const ErrorSummary& s = group.figures[index_of(Figure::reserved)];
    records += static_cast<std::int64_t>(s.count);
    EXPECT_LE(100 * std::abs(s.largest), 17.1) << group.name << ": " << s.worst;
    const ErrorSummary& allocated = group.figures[index_of(Figure::allocated_peak)];
    EXPECT_LE(100 * std::abs(allocated.largest), 0.5) << group.name << ": " << allocated.worst;
  }
  EXPECT_EQ(records, 9);
}

void expect_within(Kind kind, const std::map<std::string, double>& largest) {
  const Accuracy accuracy = errors_of_records(kind);
  EXPECT_GE(accuracy.groups.size(), largest.size());
  for (const GroupSummary& group : accuracy.groups) {
    const auto limit = largest.find(group.name);
    if (limit == largest.end()) continue;  // the sum of all
    const ErrorSummary& s = group.figures[index_of(Figure::reserved)];
    EXPECT_LE(100 * std::abs(s.largest), limit->second) << group.name << ": " << s.worst;
  }
}

/// docs/evidence/measurements.md, "Steps near balance". ZeRO-2 was 7.9 % above and ZeRO-3 with two
/// micro-batches 7.6: their first step's products had their workspaces before the engine was built.
/// FSDP2 with 16 tokens was within 2.8 % while its allocated peak was 2.6 % too low: that is exact
/// now, and less is reserved than is predicted.
TEST(Reserved, KnowsWhatItMissesNearBalance) {
  expect_within(
      Kind::balanced,
      {{"deepspeed stage 2", 0.1}, {"deepspeed stage 3", 3.2}, {"fsdp1", 1.5}, {"fsdp2", 3.1}});
}

/// The page's "Weights that head and embedding share": 13 % too high until a block without another
/// of its kind was sharded with the other blocks, before the embeddings.
TEST(Reserved, FollowsTheOrderInWhichBlocksAreSharded) {
  expect_within(Kind::shared_weights, {{"fsdp2", 3.0}});
}

/// Drawn for two GPUs (docs/evidence/measurements.md): what stage 3 reserves too little of is not
/// known.
TEST(Reserved, KnowsWhatItMissesOfASecondDrawForTwoGpus) {
  expect_within(Kind::drawn,
                {{"fsdp2", 4.7}, {"deepspeed stage 3", 13.2}, {"deepspeed stage 2", 0.8}});
}

/// A model that was built on the GPU and sharded there leaves half of each segment cached, which
/// states fill where there are some; predictions are of one that is built on the host. Adapters of
/// Phi-3 reserve 44 % more, and 2 % more where it was built on the host.
TEST(Reserved, KnowsWhatItMissesOfFewStatesBesideWhatBuildingLeft) {
  expect_within(Kind::few_states, {{"fsdp2", 44.2}});
}

/// The same page: what judges the host's pace.
TEST(Reserved, KnowsWhatItMissesAtTheHostsPace) {
  expect_within(Kind::paced, {{"fsdp1", 5.5},
                              {"fsdp2", 1.5},
                              {"deepspeed stage 1", 0.2},
                              {"deepspeed stage 2", 2.8},
                              {"deepspeed stage 3", 5.3}});
}

/// docs/evidence/measurements.md, "Two NVIDIA H100": FSDP1 and FSDP2 over several micro-batches
/// reserve more than is predicted. Stage 0 with AdamW of PyTorch has no flat copies, and is
/// predicted to have some.
TEST(Reserved, KnowsWhatItMissesInLaterRuns) {
  expect_within(Kind::later,
                {{"fsdp1", 5.4},  // from 5.25, since embeddings keep their name
                 {"fsdp2", 3.9},
                 {"deepspeed stage 0", 17.1},
                 {"deepspeed stage 1", 4.42},
                 {"deepspeed stage 2", 5.63},  // GPT-2 compiled, in fp32; else, compiled too, 2.3
                 {"deepspeed stage 3", 4.2}});
}

/// DeepSpeed's own Adam has one group: 16-bit tensors in the places of fp32 ones, and what masters
/// were cast from, stay cached. A history of OPT 350M's allocations told it; its error and four
/// others' of 4 to 9 % fell to 0.9 and less. Two are missed yet: Llama without checkpoints 8.6 %
/// under, and where PyTorch's AdamW is asked for 16.4 over.
TEST(Reserved, KnowsWhatItMissesOfDeepSpeedsOwnAdam) {
  expect_within(Kind::later_own, {{"deepspeed stage 2", 16.4}});
}

/// The same page: most with parameters and states on the host.
TEST(Reserved, KnowsWhatItMissesWithTensorsOnTheHost) {
  expect_within(Kind::later_host, {{"deepspeed stage 2", 0.4}, {"deepspeed stage 3", 10.8}});
}

}  // namespace
}  // namespace shardplan::reserved_test
