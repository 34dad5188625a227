// What knowledge distillation makes of all logits of a model.
#pragma once

#include "model/layers/basic.h"
#include "plan/plan.h"

namespace shardplan {

/// Losses that are made of all logits, whatever a trainer fuses with the head.
constexpr bool asks_whole_logits(LossKind loss) {
  return loss == LossKind::distillation || loss == LossKind::distillation_in_chunks ||
         loss == LossKind::anchored || loss == LossKind::logits;
}

/// Of a student's `logits` the loss against a teacher's; of a teacher's (LossKind::logits)
/// themselves, as its caller gets them.
ValueId distilled(Graph& g, ValueId logits);

}  // namespace shardplan
