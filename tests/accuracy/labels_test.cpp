// "Exact" is said of bytes that a record or a framework's own count has confirmed, and of no
// others: every optimizer, precision, format, place of states, GPU and framework.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "all_records.h"
#include "calibrate/margins.h"
#include "estimate/confirmed.h"
#include "estimate/estimate.h"
#include "frameworks/registry.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "optimizers/registry.h"
#include "program/program.h"
#include "render/foundation.h"

namespace shardplan::labels_test {
namespace {

const Calibration& calibration() {
  static const Calibration c = load_calibration();
  return c;
}

/// Nothing where a framework has no such thing.
std::optional<Job> loaded(const Json& json) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  try {
    return load_job(json, "labels", {&hardware, ""});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Json job_of(const std::string& framework) {
  const bool several = framework != "single" && framework != "native";
  return {{"model", "llama-3.2-1b"},
          {"cluster", several ? "2xH100" : "1xH100"},
          {"framework", {{"name", framework}}},
          {"workload", {{"micro_batch", 1}, {"sequence_length", 128}}}};
}

/// The base job, and it with each value of one field that labels may depend on.
std::vector<Json> jobs() {
  const std::vector<Json> changes{
      {{"/precision", "fp32"}},
      {{"/precision", "bf16-pure"}},
      {{"/precision", "fp16-pure"}},
      {{"/precision", "bf16-autocast"}},
      {{"/precision", "fp16-autocast"}},
      {{"/precision", "bf16-master"}},
      {{"/precision", "fp16-master"}},
      {{"/precision", {{"preset", "bf16-autocast"}, {"linear", "fp8-tensorwise"}}}},
      {{"/precision", {{"preset", "bf16-pure"}, {"linear", "fp8-rowwise"}}}},
      {{"/precision", {{"preset", "bf16-master"}, {"linear", "fp8-tensorwise"}}}},
      {{"/workload/lora", {{"rank", 8}}}},
      {{"/workload/lora", {{"rank", 8}, {"quantization", "nf4"}}}},
      {{"/workload/lora", {{"rank", 8}, {"quantization", "int8"}}}},
      {{"/framework/zero_stage", 2}, {"/framework/offload_optimizer", "cpu"}},
      {{"/framework/zero_stage", 3}, {"/framework/offload_optimizer", "nvme"}},
      {{"/framework/zero_stage", 3}, {"/framework/offload_param", "nvme"}},
      {{"/framework/cpu_offload", true}},
      {{"/cluster", "2xMI300X"}},
      {{"/cluster", "1xMI300X"}},
      {{"/cluster", "2xA100-80GB"}},
      {{"/cluster", "4x8xH100"}},
      {{"/parallel/tensor", 2}},
      {{"/parallel/pipeline", 2}},
      {{"/parallel/context", 2}},
      {{"/parallel/sequence", 2}}};
  std::vector<Json> all;
  for (const FrameworkTraits* framework : all_frameworks()) {
    const Json base = job_of(std::string(std::string_view(framework->name)));
    all.push_back(base);
    for (const Json& change : changes) {
      Json job = base;
      for (const auto& [pointer, value] : change.items()) job[Json::json_pointer(pointer)] = value;
      if (change.contains("/workload/lora")) job["workload"]["method"] = "lora";
      all.push_back(std::move(job));
    }
    for (const OptimizerDescription* optimizer : optimizers()) {
      Json job = base;
      job["optimizer"] = std::string(optimizer->name);
      all.push_back(std::move(job));
    }
  }
  return all;
}

bool has_golden_count(const OptimizerDescription& optimizer) {
  return std::filesystem::exists(std::string(SHARDPLAN_SOURCE_DIR "/tests/golden/optimizers/") +
                                 std::string(optimizer.name) + ".json");
}

/// What makes a line of this category exact in this plan; none: it is not.
bool is_confirmed(const CategoryLine& line, const Job& job, const Estimate& e) {
  if (!unconfirmed(job.plan, e.host_per_node, calibration()).empty()) return false;
  const OptimizerDescription& optimizer = *job.plan.optimizer.kind;
  switch (line.category) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::kv_cache:
      return e.most_over <= 1;
    case Category::optimizer_states:
      return has_golden_count(optimizer) &&
             std::any_of(optimizer.evidence.begin(), optimizer.evidence.end(),
                         [](const Evidence& given) { return given.source == Source::exact; });
    default:
      return false;
  }
}

std::optional<Estimate> estimated(const Job& job) {
  try {
    return estimate(job.model, job.plan, calibration(), ReservedMemory::ratio);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

TEST(Labels, SayExactOfWhatWasConfirmedAlone) {
  int answers = 0, exact = 0;
  for (const Json& json : jobs()) {
    const std::optional<Job> job = loaded(json);
    if (!job) continue;
    const std::optional<Estimate> found = estimated(*job);
    if (!found) continue;
    const Estimate& e = *found;
    ++answers;
    for (const CategoryLine& line : e.breakdown) {
      if (line.source != Source::exact || line.resident == 0) continue;
      EXPECT_TRUE(is_confirmed(line, *job, e)) << name_of(line.category) << ": " << json;
      ++exact;
    }
    const std::vector<Statement> told = statements(e, *job, calibration());
    const bool open = !unconfirmed(job->plan, e.host_per_node, calibration()).empty();
    const bool says = std::any_of(told.begin(), told.end(),
                                  [](const Statement& t) { return t.standing == "exact"; });
    EXPECT_FALSE(open && says) << json;
  }
  EXPECT_GE(answers, 100);
  EXPECT_GE(exact, 100);
}

Source states_of(Json job) {
  const std::optional<Job> read = loaded(job);
  EXPECT_TRUE(read) << job;
  return estimate(read->model, read->plan, calibration(), ReservedMemory::ratio)
      .breakdown[index_of(Category::optimizer_states)]
      .source;
}

TEST(Labels, CallTheseWhatTheyAre) {
  Json plain = job_of("single");
  plain["precision"] = "bf16-autocast";
  EXPECT_EQ(states_of(plain), Source::exact);
  plain["optimizer"] = "lamb";  // bitsandbytes' own states
  EXPECT_EQ(states_of(plain), Source::exact);
  plain["cluster"] = "1xMI300X";  // of which there is no run
  EXPECT_EQ(states_of(plain), Source::modelled);
  Json zero = job_of("deepspeed");
  EXPECT_EQ(states_of(zero), Source::exact);
  for (const char* optimizer : {"lamb", "lion"}) {
    zero["optimizer"] = optimizer;
    EXPECT_EQ(states_of(zero), Source::modelled) << optimizer;
  }
}

/// `shardplan calibrate --margins` writes them anew.
TEST(Labels, ConfirmedFeaturesAreThoseOfRecords) {
  const std::vector<Confirmed> found = confirmed_features(all_records().comparisons);
  const std::vector<Confirmed>& told = calibration().confirmed;
  ASSERT_EQ(told.size(), found.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].framework, found[i].framework);
    EXPECT_EQ(told[i].features, found[i].features) << told[i].framework;
  }
}

}  // namespace
}  // namespace shardplan::labels_test
