// Logs as the trainers print them: which steps count, how long they took, which memory they had.
#include "logs/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace shardplan::logs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// 8 GPUs with 2 samples of 4,096 tokens each.
constexpr StepSize kStep{16, 16 * 4096, 8};

RunLog read(const std::string& text) {
  return read_log(text, "train.log", kStep);
}

TEST(MegatronLog, TakesTheMedianWithoutTheFirstTwoAndTheFullestRank) {
  const RunLog run = read(R"(
 > building train, validation, and test datasets ...
[Rank 0] (after 20 iterations) memory (MB) | allocated: 1550.404296875 | max allocated: 20561.49462890625 | reserved: 28404.0 | max reserved: 28404.0
[Rank 1] (after 20 iterations) memory (MB) | allocated: 1550.404296875 | max allocated: 20600.5 | reserved: 28000.0 | max reserved: 28000.0
 [2024-10-24 21:02:23] iteration       20/   40000 | consumed samples:         1280 | elapsed time per iteration (ms): 2826.6 | throughput per GPU (TFLOP/s/GPU): 23.5 | learning rate: 1.200000E-05 | global batch size:    64 | lm loss: 1.0E+01 | loss scale: 1.0 | grad norm: 5.9 | number of skipped iterations:   0 | number of nan iterations:   0 |
 [2024-10-24 21:02:40] iteration       40/   40000 | consumed samples:         2560 | elapsed time per iteration (ms): 900.0 | throughput per GPU (TFLOP/s/GPU): 73.5 |
 [2024-10-24 21:02:57] iteration       60/   40000 | consumed samples:         3840 | elapsed time per iteration (ms): 826.6 | throughput per GPU (TFLOP/s/GPU): 80.1 |
 [2024-10-24 21:03:14] iteration       80/   40000 | consumed samples:         5120 | elapsed time per iteration (ms): 830.0 | throughput per GPU (TFLOP/s/GPU): 79.8 |
 [2024-10-24 21:03:31] iteration      100/   40000 | consumed samples:         6400 | elapsed time per iteration (ms): 1500.0 | throughput per GPU (TFLOP/s/GPU): 44.1 |
)");
  EXPECT_EQ(run.kind, "a Megatron-LM log");
  EXPECT_DOUBLE_EQ(run.step_seconds, 0.830);
  EXPECT_EQ(run.memory.allocated, static_cast<std::int64_t>(20600.5 * 1024 * 1024));
  EXPECT_EQ(run.memory.reserved, std::int64_t{28404} * 1024 * 1024);
  EXPECT_EQ(how_counted(run), "median of 3 entries, the first 2 left out");
}

TEST(TorchtitanLog, IsReadThroughItsColoursAndCountsTokensOfOneGpu) {
  const RunLog run = read(
      "[rank0]:[titan] 2025-08-07 14:37:34,412 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: "
      "12.2579  \x1b[38;2;180;60;0mgrad_norm:  1.6903  \x1b[38;2;54;234;195mmemory: "
      "50.12GiB(63.30%)  \x1b[34mtps: 122  \x1b[36mtflops: 7.02  \x1b[35mmfu: 0.71%\x1b[39m\n"
      "step: 10  loss: 10.1029  grad_norm:  2.3491  memory: 42.31GiB(30.26%)  tps: 5,102  "
      "tflops: 295.7  mfu: 29.90%\n"
      "validate step: 10  loss: 10.0  memory: 70.00GiB(88.00%)  tps: 20,000\n"
      "step: 20  loss:  8.9029  grad_norm:  2.0491  memory: 42.35GiB(30.29%)  tps: 8,192  "
      "tflops: 353.7  mfu: 35.77%\n");
  EXPECT_EQ(run.kind, "a torchtitan log");
  EXPECT_DOUBLE_EQ(run.step_seconds, 1.0);  // 2 x 4,096 tokens of a GPU at 8,192 a second
  EXPECT_EQ(run.memory.reserved, static_cast<std::int64_t>(50.12 * kGiB));
  EXPECT_FALSE(run.memory.allocated);
}

TEST(DeepSpeedLog, CountsSamplesOfAllGpus) {
  const std::string line =
      "[2023-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, "
      "RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=";
  const RunLog run = read(line + "2.0, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n" + line +
                          "16.0, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n" + line +
                          "32.0, MemAllocated=4.32GB, MaxMemAllocated=38.51GB\n");
  EXPECT_EQ(run.kind, "a DeepSpeed log");
  EXPECT_DOUBLE_EQ(run.step_seconds, 0.5);
  EXPECT_EQ(run.memory.allocated, static_cast<std::int64_t>(38.51 * kGiB));
}

TEST(DeepSpeedLog, AddsUpTheTimersOfWholeSteps) {
  const RunLog run = read(
      "[Rank 0] time (ms) | fwd_microstep: 55.0 | bwd_microstep: 120.0 | bwd_inner_microstep: 12.2 "
      "| bwd_allreduce_microstep: 103.6 | step_microstep: 0.34\n"
      "[Rank 0] time (ms) | fwd: 1000.0 | bwd: 2000.5 | bwd_inner: 1711.20 | bwd_allreduce: 239.11 "
      "| step: 139.5\n");
  EXPECT_EQ(run.kind, "a DeepSpeed log");
  EXPECT_DOUBLE_EQ(run.step_seconds, 3.14);
  EXPECT_EQ(how_counted(run), "median of 1 entries, the first 0 left out");
}

TEST(TrainerState, TellsTheRunsMeanAndItsPeak) {
  const RunLog run = read(R"({"global_step": 200, "log_history": [
    {"epoch": 0.1, "loss": 1.2, "step": 100},
    {"epoch": 0.2, "step": 200, "total_flos": 1.2e16, "train_loss": 1.2, "train_runtime": 225.0,
     "train_samples_per_second": 3.543, "train_steps_per_second": 0.886,
     "before_init_mem_gpu": 4000, "init_mem_gpu_alloc_delta": 500,
     "train_mem_gpu_alloc_delta": -100, "train_mem_gpu_peaked_delta": 6000}]})");
  EXPECT_EQ(run.kind, "HF Trainer's trainer_state.json");
  EXPECT_DOUBLE_EQ(run.step_seconds, 1.125);
  EXPECT_EQ(run.memory.allocated, 10400);
  EXPECT_EQ(how_counted(run), "mean of 200 steps, with the first ones");
}

TEST(TrainerLines, TakeTheTimeBetweenTwoStatesOfTheBar) {
  const RunLog run = read(
      "Map: 100%|██████████| 1000/1000 [10:00<00:00, 1.67 examples/s]\n"
      "  0%|          | 0/200 [00:00<?, ?it/s]\r  1%|          | 1/200 [00:31<1:42:49, 31.00s/it]\r"
      "  1%|1         | 2/200 [00:40<50:00, 15.00s/it]\r"
      " 50%|█████     | 100/200 [02:20<02:00,  1.20s/it]\r"
      "100%|██████████| 200/200 [04:00<00:00,  1.01s/it]\n"
      "{'train_runtime': 241.5, 'train_samples_per_second': 3.5, 'train_steps_per_second': 0.828, "
      "'train_loss': 1.2, 'epoch': 0.32}\n");
  EXPECT_EQ(run.kind, "HF Trainer's output");
  EXPECT_NEAR(run.step_seconds, 200.0 / 198, 1e-9);
  EXPECT_EQ(how_counted(run), "mean of 198 steps, without the first ones");
}

TEST(TrainerLines, TakeTheRateWhereThereIsNoBar) {
  const RunLog run = read(
      "{'loss': '1.1728', 'learning_rate': '0.0', 'epoch': '0.32'}\n"
      "{'train_runtime': '225.8', 'train_samples_per_second': '3.543', 'train_steps_per_second': "
      "'0.8', 'train_loss': '1.211', 'epoch': '0.32'}\n");
  EXPECT_DOUBLE_EQ(run.step_seconds, 1.25);
  EXPECT_EQ(how_counted(run), "mean of all steps, with the first ones");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was read";
  return {};
}

TEST(Logs, WithoutAStepSayWhatWasLookedFor) {
  EXPECT_THAT(refusal("hello\n"),
              AllOf(HasSubstr("train.log"), HasSubstr("no step's time was found"),
                    HasSubstr("elapsed time per iteration"), HasSubstr("tps: N"),
                    HasSubstr("CurrSamplesPerSec"), HasSubstr("train_runtime")));
  EXPECT_THAT(refusal(" \n"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("step: 3  loss: 1.0  memory: 1GiB  tps: 0\n"), HasSubstr("no step's time"));
  EXPECT_THAT(refusal(R"({"log_history": [{"step": 100, "loss": 1.2}]})"),
              HasSubstr("no step's time"));
  // What people who ask why have at hand.
  EXPECT_THAT(refusal("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB.\n"),
              AllOf(HasSubstr("want of GPU memory"), HasSubstr("shardplan fit")));
  // A rate of one digit would be 10 % off.
  EXPECT_THAT(refusal("{'train_runtime': 900, 'train_steps_per_second': 0.005}\n"),
              HasSubstr("no step's time"));
}

}  // namespace
}  // namespace shardplan::logs
