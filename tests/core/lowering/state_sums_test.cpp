// What a step starts for a state space that PyTorch's own operations compute.
#include <gtest/gtest.h>

#include <string>

#include "json/document.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"

namespace shardplan::state_sums_test {
namespace {

constexpr std::int64_t kTokens = 512, kChunk = 256, kHeads = 32, kHead = 64;

struct Sums {
  std::int64_t rows = 0;  ///< short ones, of all kernels over more than a token's heads
  int kernels = 0;        ///< that add them up
};

/// A step of a layer of Mamba 2, whose norms have rows of 1,024 and more.
Sums sums() {
  static const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  const std::string text = R"({"model": {"model_type": "mamba2", "hidden_size": 1024,
      "num_hidden_layers": 1, "num_heads": 32, "head_dim": 64, "state_size": 128, "n_groups": 1,
      "expand": 2, "chunk_size": 256, "vocab_size": 1024},
      "cluster": "1xH100", "precision": "bf16-autocast", "optimizer": "adamw",
      "workload": {"kind": "train", "method": "full", "micro_batch": 1, "sequence_length": 512}})";
  const Job job = load_job(parse_json(text, "job.json"), "job.json", context);
  const RankModel share(job.model, job.plan);
  const Program program = lower(share.model(), job.plan, share.run(), 0);
  Sums sum;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind != KernelKind::row_reduction || k.m <= kTokens * kHeads) return;
      sum.rows += times * k.m;
      sum.kernels += static_cast<int>(times) * k.calls;
    });
  });
  return sum;
}

// Forward over the state, for pairs of tokens of a chunk and for each column. Backward over a
// head's columns, which lie apart, and over the state for each column again. All other sums add
// rows to each other.
TEST(StateSums, AddShortRowsWhereTheSummedDimensionLiesTogether) {
  const Sums found = sums();
  EXPECT_EQ(found.kernels, 4);
  constexpr std::int64_t kPairs = kTokens * kChunk * kHeads, kColumns = kTokens * kHeads * kHead;
  EXPECT_EQ(found.rows, 3 * kPairs + 2 * kColumns);
}

}  // namespace
}  // namespace shardplan::state_sums_test
