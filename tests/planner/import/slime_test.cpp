// slime's launch scripts, as its own repository writes them: arrays of arguments, put together for
// one Ray job.
#include <gmock/gmock.h>

#include <algorithm>

#include "import_testing.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::importing::slime_test {
namespace {

using ::testing::HasSubstr;

const Json kGpus{{"cluster", "H100-80GB"}};

constexpr const char* kScript = R"script(#!/bin/bash
pkill -9 sglang
SCRIPT_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${SCRIPT_DIR}/models/qwen3-4B.sh"
CKPT_ARGS=(
   --hf-checkpoint /models/Qwen3-4B-FP8
   --ref-load /models/Qwen3-4B_torch_dist
   --save-interval 20
)
ROLLOUT_ARGS=(
   --prompt-data /models/dapo-math-17k/dapo-math-17k.jsonl
   --apply-chat-template
   --rm-type deepscaler
   --num-rollout 3000
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192
   --rollout-temperature 0.8
   --global-batch-size 128
   --balance-data
)
PERF_ARGS=(
   --tensor-model-parallel-size 2
   --sequence-parallel
   --pipeline-model-parallel-size 1
   --recompute-granularity full
   --recompute-method uniform
   --recompute-num-layers 1
   --use-dynamic-batch-size
   --max-tokens-per-gpu 9216
)
GRPO_ARGS=(
   --advantage-estimator grpo
   --use-kl-loss
   --kl-loss-coef 0.00
   --entropy-coef 0.00
   --eps-clip 0.2
)
OPTIMIZER_ARGS=(
   --optimizer adam
   --lr 1e-6
   --weight-decay 0.1
)
SGLANG_ARGS=(
   --rollout-num-gpus-per-engine 2
   --sglang-mem-fraction-static 0.7
)
MISC_ARGS=(
   --attention-dropout 0.0
   --accumulate-allreduce-grads-in-fp32
   --attention-backend flash
)
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json="${RUNTIME_ENV_JSON}" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node 8 \
   PLACE \
   ${MODEL_ARGS[@]} \
   ${CKPT_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   ${OPTIMIZER_ARGS[@]} \
   ${GRPO_ARGS[@]} \
   ${PERF_ARGS[@]} \
   ${SGLANG_ARGS[@]} \
   ${MISC_ARGS[@]}
)script";

std::string script(const std::string& place, const std::string& without = "") {
  std::string text = kScript;
  text.replace(text.find("PLACE"), 5, place);
  if (!without.empty()) text.erase(text.find(without), without.size());
  return text;
}

Json job(const std::string& text) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json imported = job_of(text, kGpus);
  load_job(imported, "job", {.hardware = &hardware, .directory = ""});
  return imported;
}

TEST(ImportSlime, TakesTrainerAndEngine) {
  const Json all = job(script("--colocate"));
  EXPECT_EQ(all["model"], "/models/Qwen3-4B");  // the engine's checkpoint is in fp8
  EXPECT_EQ(all["cluster"], "1x8xH100-80GB");
  EXPECT_EQ(all["precision"], "bf16-master");
  EXPECT_EQ(all["checkpointing"], "full");
  EXPECT_EQ(all["framework"]["name"], "megatron");
  EXPECT_EQ(all["framework"]["distributed_optimizer"], true);
  EXPECT_EQ(all["parallel"]["tensor"], 2);
  const Json& work = all["workload"];
  EXPECT_EQ(work["kind"], "rlhf");
  EXPECT_EQ(work["algorithm"], "grpo");
  EXPECT_EQ(work["new_tokens"], 8192);
  EXPECT_EQ(work["token_budget"], 9216);
  EXPECT_EQ(work["scoring_tokens"], 9216);
  EXPECT_EQ(work["micro_batch"], 1);
  EXPECT_EQ(work["gradient_accumulation"], 32);  // 128 over 4
  EXPECT_EQ(work["generation_batch"], 32 * 8 / 4);
  EXPECT_FALSE(work.contains("entropy"));
  EXPECT_EQ(work["models"]["actor"]["idle"], "host");
  EXPECT_EQ(work["models"]["reference"]["idle"], "host");
  const Json& rollout = work["rollout"];
  EXPECT_EQ(rollout["engine"], "sglang");
  EXPECT_EQ(rollout["placement"], "colocated");
  EXPECT_EQ(rollout["gpu_memory_utilization"], 0.7);
  EXPECT_EQ(rollout["tensor_parallel"], 2);
  EXPECT_EQ(rollout["sleep_level"], 2);
  EXPECT_EQ(rollout["completions"], 8);
  EXPECT_EQ(rollout["weight_bucket"], 512 << 20);
}

TEST(ImportSlime, GivesAnEngineItsOwnGpus) {
  std::string text = script("--rollout-num-gpus 8", "   --use-kl-loss\n");
  text.replace(text.find("train.py"), 8, "train_async.py");
  const Json work = job(text)["workload"];
  EXPECT_EQ(work["reference"], "none");
  EXPECT_EQ(work["rollout"]["placement"], "separate");
  EXPECT_EQ(work["rollout"]["gpus"], 8);
  EXPECT_EQ(work["rollout"]["steps_off_policy"], 1);
  EXPECT_FALSE(work.contains("models"));  // neither sleeps
}

TEST(ImportSlime, SaysWhatItDoesNotTake) {
  for (const char* flag : {"sglang_speculative_algorithm", "sglang_enable_dp_attention"}) {
    std::string more = std::string("--colocate --") + flag;
    std::ranges::replace(more, '_', '-');
    if (std::string_view(flag).ends_with("algorithm")) more += " EAGLE";
    EXPECT_TRUE(noted(import_text(script(more)), Note::Kind::warning, flag)) << flag;
  }
  EXPECT_THAT(error_of(script("--colocate", "   --rollout-max-response-len 8192\n")),
              HasSubstr("rollout_max_response_len"));
  EXPECT_THAT(error_of(script("--colocate --train-backend fsdp")), HasSubstr("megatron"));
}

/// Supervised: as many tokens as a GPU takes, and no engine.
TEST(ImportSlime, Supervises) {
  const Json all = job(script("--loss-type sft_loss --debug-train-only"));
  EXPECT_EQ(all["workload"].value("kind", "train"), "train");
  EXPECT_EQ(all["workload"]["micro_batch"], 1);
  EXPECT_EQ(all["workload"]["sequence_length"], 9216);
}

}  // namespace
}  // namespace shardplan::importing::slime_test
