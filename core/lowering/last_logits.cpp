// The backward pass's own peak, at the loss's gradient, has the logits anyway: they are added when
// it has ended.
#include "lowering/last_logits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "lowering/segments.h"
#include "program/tape.h"
#include "trainers/description.h"

namespace shardplan {

namespace {

/// Not the model of a reward, which has none.
bool has_token_loss(const Model& model, const Plan& plan) {
  return std::ranges::any_of(model.segments.back().graph.ops(), [&](const Op& op) {
    return op.fused != nullptr && op.fused == plan.trainer->token_loss;
  });
}

/// Of fp32 logits.
std::int64_t bytes_of(const Model& model, const Plan& plan) {
  const bool held = plan.trainer->keeps_last_logits && plan.loss == LossKind::cross_entropy &&
                    has_token_loss(model, plan);
  if (!held) return 0;
  const Sizes sizes = sizes_of(plan, model);
  const std::int64_t tokens = checked_mul(sizes.batch, sizes.sequence);
  return round_up(checked_mul(checked_mul(tokens, model.facts.vocabulary), 4), kAllocationUnit);
}

Event held(Event::Kind kind, std::int64_t bytes) {
  Event e;
  e.kind = kind;
  e.category = Category::logits_and_loss;
  e.bytes = bytes;
  return e;
}

}  // namespace

void hold_last_logits(Program& program, const Model& model, const Plan& plan) {
  const std::int64_t bytes = bytes_of(model, plan);
  if (bytes == 0) return;
  std::vector<Event> events;
  for (const Event& e : program.events) {
    const bool ends = e.kind == Event::Kind::end_phase;
    if (ends && e.phase == Phase::forward) events.push_back(held(Event::Kind::free, bytes));
    if (ends && e.phase == Phase::backward) events.push_back(held(Event::Kind::alloc, bytes));
    events.push_back(e);
  }
  program.events = std::move(events);
  // The first step begins without them: said to have them, its forward pass is not too small.
  program.resident.push_back(held(Event::Kind::alloc, bytes));
  if (!program.build.empty()) program.build.push_back(program.resident.back());
}

}  // namespace shardplan
