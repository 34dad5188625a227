// A log where a configuration is asked for.
#include "logs/unread_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace shardplan::logs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of_log(const std::string& text) {
  try {
    refuse_log(text, "train.log");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(UnreadLog, SaysWhatPyTorchSaysOfMemory) {
  EXPECT_THAT(
      refusal_of_log(
          "  0%|          | 0/1000 [00:00<?, ?it/s]\nTraceback (most recent call last):\n"
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a "
          "total capacity of 39.39 GiB of which 1.20 GiB is free. Including non-PyTorch memory, "
          "this process has 38.18 GiB memory in use. Of the allocated memory 36.40 GiB is "
          "allocated by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated.\n"),
      AllOf(HasSubstr("train.log: the run stopped for want of GPU memory: 1.96 GiB was asked for, "
                      "1.20 GiB of 39.39 GiB was free, tensors had 36.40 GiB, 1.02 GiB lay unused"),
            HasSubstr("shardplan fit"), Not(HasSubstr("expandable_segments"))));
}

TEST(UnreadLog, SaysWhatWouldHaveBeenEnough) {
  EXPECT_THAT(
      refusal_of_log("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 "
                     "MiB. GPU 3 has a total capacty of 23.65 GiB of which 100.00 MiB is free. Of "
                     "the allocated memory 15.00 GiB is allocated by PyTorch, and 6.00 GiB is "
                     "reserved by PyTorch but unallocated."),
      AllOf(HasSubstr("100.00 MiB of 23.65 GiB was free"), HasSubstr("expandable_segments:True")));
}

TEST(UnreadLog, ReadsWhatPyTorchSaidBefore) {
  EXPECT_THAT(
      refusal_of_log("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 "
                     "GiB total capacity; 9.75 GiB already allocated; 11.62 MiB free; 9.90 GiB "
                     "reserved in total by PyTorch)"),
      HasSubstr("20.00 MiB was asked for, 11.62 MiB of 10.76 GiB was free, tensors had "
                "9.75 GiB"));
  EXPECT_THAT(refusal_of_log("RuntimeError: CUDA error: out of memory\n"),
              HasSubstr("want of GPU memory; expected"));
}

TEST(UnreadLog, OfARunThatWentOnIsForAnchor) {
  EXPECT_THAT(
      refusal_of_log("step: 10  loss: 10.1  memory: 42.31GiB(30.26%)  tps: 5,102  tflops: 1\n"),
      AllOf(HasSubstr("is a torchtitan log, and no configuration"),
            HasSubstr("shardplan anchor train.log JOB")));
  EXPECT_EQ(refusal_of_log("micro_batch_size: 4\nsteps: 100\n"), "");
  EXPECT_EQ(refusal_of_log(""), "");
}

}  // namespace
}  // namespace shardplan::logs
