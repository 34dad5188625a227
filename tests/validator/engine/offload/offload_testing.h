// Runs that have something on the host, and what they are to have in common with others.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "validator/engine_testing.h"

namespace shardplan::validator::testing {

struct Kind {
  const char* name;
  DType dtype;
  std::optional<DType> master;
  DType states = DType::f32;
};
inline constexpr Kind kFp32{"fp32", DType::f32, std::nullopt};
inline const Kind kKinds[] = {kFp32,
                              {"bf16-master", DType::bf16, DType::f32},
                              {"bf16-pure", DType::bf16, std::nullopt, DType::bf16},
                              {"fp16-master", DType::f16, DType::f32}};

inline DecoderSpec of_layers(DecoderSpec spec, std::int64_t layers) {
  spec.layers = layers;
  return spec;
}

inline TestRun run_of(const Kind& kind, int stage, int world, std::int64_t accumulation) {
  TestRun run{.world = world};
  TrainingOptions& o = run.options;
  o.stage = stage;
  o.dtype = kind.dtype;
  o.accumulation = accumulation;
  o.optimizer.master = kind.master;
  o.optimizer.states = kind.states;
  o.optimizer.largest_norm = 1;
  o.schedule = ConstantLr{3e-3};
  return run;
}

inline void expect_equal(const std::vector<StepResult>& a, const std::vector<StepResult>& b,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].loss, b[i].loss) << what << ", loss of step " << i + 1;
    EXPECT_EQ(a[i].skipped, b[i].skipped) << what << ", step " << i + 1;
    if (a[i].skipped) continue;  // NaN is equal to nothing
    EXPECT_EQ(a[i].gradient_norm, b[i].gradient_norm) << what << ", norm of step " << i + 1;
  }
}

}  // namespace shardplan::validator::testing
