// What gradients cost on one GPU and under DDP: kernels that autograd and the reducer start.
#include <gtest/gtest.h>

#include <map>

#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "small_llama.h"

namespace shardplan::ddp_gradients_test {
namespace {

/// A step's kernels that read and write tensors as large as the head, by how many times its bytes
/// they move. Its products are none of them.
std::map<double, std::int64_t> head_kernels(FrameworkKind framework, std::int64_t accumulation,
                                            bool views = false) {
  constexpr std::int64_t kVocabulary = 30000;
  Plan plan = plan_of(framework, "bf16-pure", framework == FrameworkKind::ddp ? 2 : 1);
  plan.workload.gradient_accumulation = accumulation;
  plan.framework.ddp.gradient_as_bucket_view = views;
  const Model model = small_llama::llama(plan, kVocabulary);
  const Program program = lower(model, plan, run_segments(model, plan), 0);
  constexpr double kElements = kVocabulary * small_llama::kHidden;
  std::map<double, std::int64_t> found;
  bool backward = false;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::begin_phase) backward = e.phase == Phase::backward;
    if (e.kind != Event::Kind::compute || !backward) return;
    for_each_kernel(program, e, [&](const Kernel& k) {
      if (k.kind == KernelKind::elementwise && k.elements == kElements)
        found[k.bytes / (2 * kElements)] += times * k.calls;
    });
  });
  return found;
}

using Kernels = std::map<double, std::int64_t>;

// Embedding and head are as large as each other.
TEST(DdpGradients, AreHandedOverAndAddedUpOnOneGpu) {
  EXPECT_EQ(head_kernels(FrameworkKind::single, 1), Kernels{});
  EXPECT_EQ(head_kernels(FrameworkKind::single, 4), (Kernels{{3, 2 * 3}}));
}

TEST(DdpGradients, GoToTheBucketsAndBackOnceAStep) {
  EXPECT_EQ(head_kernels(FrameworkKind::ddp, 1), (Kernels{{2, 2 * 2}}));
  EXPECT_EQ(head_kernels(FrameworkKind::ddp, 1, true), (Kernels{{2, 2}})) << "views stay";
  EXPECT_EQ(head_kernels(FrameworkKind::ddp, 3), (Kernels{{2, 2 * 2}, {3, 2 * 2}}));
}

}  // namespace
}  // namespace shardplan::ddp_gradients_test
