// A plain job of each trainer, algorithm and framework: exported and imported it has the same
// answer to the byte, or it is refused by a field with what would do.
#include <gmock/gmock.h>

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "export/export.h"
#include "import_testing.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "save/estimate.h"

namespace shardplan::importing::rl_round_trip {
namespace {

using ::testing::AllOf;
using ::testing::Combine;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::Values;

struct Trainer {
  const char* name;
  const char* format;
};
constexpr Trainer kTrl{"trl", "training_arguments"}, kOpenRlhf{"openrlhf", "openrlhf"},
    kVerl{"verl", "verl"}, kNemoRl{"nemo_rl", "nemo_rl"};

/// "" for none, a stage of DeepSpeed's, or a framework's name.
using Framework = std::string;

struct Asked {
  Trainer trainer;
  Framework framework;
  std::string algorithm;
  bool lora = false, engine = false, flash_attn = false;

  bool generates() const { return algorithm == "grpo" || algorithm == "ppo"; }
  bool has_zero() const { return framework.size() == 1 || framework.empty(); }
  std::string told() const {
    return std::string(trainer.name) + " " + algorithm + " under '" + framework + "'" +
           (lora ? ", LoRA" : "") + (engine ? ", vLLM" : "") + (flash_attn ? ", flash-attn 2" : "");
  }
};

Json job_of(const Asked& a) {
  Json work{{"kind", "rlhf"}, {"algorithm", a.algorithm}};
  if (a.generates())
    work.update({{"prompt_length", 512}, {"new_tokens", 512}, {"micro_batch", 8}});
  else
    work["sequence_length"] = 1024;
  if (a.lora) work.update({{"method", "lora"}, {"lora", {{"rank", 16}}}});
  if (a.engine) work["rollout"] = Json{{"engine", "vllm"}};
  Json job{{"model", "qwen2.5-0.5b"},
           {"cluster", "4xH100"},
           {"trainer", a.trainer.name},
           {"workload", std::move(work)}};
  if (a.flash_attn) job["sdpa_kernel"] = "flash_attn";
  if (a.framework.size() == 1)
    job["framework"] = Json{{"name", "deepspeed"}, {"zero_stage", std::stoi(a.framework)}};
  else if (!a.framework.empty())
    job["framework"] = a.framework;
  return job;
}

/// Whether the trainer runs this algorithm so: then it must come back.
bool runs(const Asked& a) {
  const std::string trainer = a.trainer.name;
  const bool fsdp2 = a.framework == "fsdp2" || a.framework.empty();
  const bool megatron = a.framework == "megatron" && !a.lora && !a.flash_attn;
  if (trainer == "trl") return a.algorithm != "ppo" && a.framework != "megatron";
  if (trainer == "openrlhf") return a.algorithm != "kto" && a.has_zero();
  if (trainer == "verl")
    return a.generates() && (a.framework == "fsdp1" || fsdp2 || (megatron && a.engine));
  return a.algorithm != "ppo" && a.algorithm != "kto" && (fsdp2 || megatron);
}

Job loaded(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job.json", {.hardware = &hardware});
}

/// All of an answer but how the job was said.
Json answer(const Job& job, const Estimate& e) {
  Json json = to_json(e, job);
  for (const char* key : {"warnings", "assumed"}) json.erase(key);
  return json;
}

void go_and_return(const Asked& a) {
  static const Calibration calibration = load_calibration();
  const Json asked = job_of(a);
  const Job before = loaded(asked);
  const Estimate first = estimate_rlhf(*before.rlhf, calibration);
  const ExportedFile file = export_as(a.trainer.format, asked, before, first);
  const Imported imported = import_text(file.text, {{"cluster", "4xH100"}}, file.name);
  const Job after = loaded(imported.job);
  const Estimate second = estimate_rlhf(*after.rlhf, calibration);
  const Json was = answer(before, first), is = answer(after, second);
  EXPECT_EQ(was, is) << a.told() << Json::diff(was, is).dump(1) << file.text
                     << imported.job.dump(1);
}

void check(const Asked& a) {
  std::string error = "no error";
  try {
    go_and_return(a);
  } catch (const InputError& e) {
    error = e.what();
  }
  if (runs(a))
    EXPECT_EQ(error, "no error") << a.told();
  else
    EXPECT_THAT(error, AllOf(ContainsRegex(": [a-z_.]+: "), HasSubstr("expected"))) << a.told();
}

class OfTrainers : public ::testing::TestWithParam<std::tuple<Trainer, Framework>> {};

TEST_P(OfTrainers, ComeBackAsTheSameJob) {
  const auto& [trainer, framework] = GetParam();
  for (const char* algorithm : {"grpo", "ppo", "dpo", "kto", "reward"})
    for (const bool lora : {false, true})
      for (const bool engine : {false, true}) {
        Asked a{trainer, framework, algorithm, lora, engine};
        if (engine && !a.generates()) continue;
        check(a);
        a.flash_attn = true;
        if (!lora) check(a);
      }
}

std::string name_of(const TestParamInfo<OfTrainers::ParamType>& info) {
  const auto& [trainer, framework] = info.param;
  const std::string how = framework.empty()       ? "unsaid"
                          : framework.size() == 1 ? "zero" + framework
                                                  : framework;
  return std::string(trainer.name) + "_" + how;
}

INSTANTIATE_TEST_SUITE_P(PlainJobs, OfTrainers,
                         Combine(Values(kTrl, kOpenRlhf, kVerl, kNemoRl),
                                 Values("", "ddp", "fsdp1", "fsdp2", "0", "1", "2", "3",
                                        "megatron")),
                         name_of);

}  // namespace
}  // namespace shardplan::importing::rl_round_trip
