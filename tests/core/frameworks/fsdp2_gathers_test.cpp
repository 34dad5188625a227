// How often FSDP2 gathers each unit.
#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "lowering/segments.h"
#include "program/program.h"
#include "small_llama.h"

namespace shardplan::fsdp2_gathers_test {
namespace {

// Each block and the root once a pass, or once where they stay gathered: nothing is gathered behind
// the last block of either pass (_fsdp_param_group.py, pre_forward and _backward_prefetch).
TEST(Fsdp2Gathers, AreOneAPassAndUnit) {
  for (const bool reshards : {true, false}) {
    Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 2);
    plan.framework.fsdp2.reshard_after_forward = reshards;
    const Model model = small_llama::llama(plan, 1024);
    std::int64_t gathers = 0;
    for_each_event(
        lower(model, plan, run_segments(model, plan), 0), [&](const Event& e, std::int64_t times) {
          if (e.kind == Event::Kind::collective && e.collective == Collective::all_gather)
            gathers += times * e.count;
        });
    EXPECT_EQ(gathers, (reshards ? 2 : 1) * (small_llama::kLayers + 1));
  }
}

}  // namespace
}  // namespace shardplan::fsdp2_gathers_test
