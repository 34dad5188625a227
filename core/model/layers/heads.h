// Losses of models that are not causal language models.
#pragma once

#include "model/layers/basic.h"

namespace shardplan {

/// torch's CrossEntropyLoss on logits as they are: no upcast to fp32 of its own. `labels`: int64
/// indices that the class makes of what it is given.
ValueId cross_entropy(Graph& g, ValueId logits, Extent labels = {});

/// The same on an fp32 copy of the logits (transformers/loss/loss_utils.py, ForMaskedLMLoss).
ValueId cross_entropy_f32(Graph& g, ValueId logits);

/// The mean of an output, for models without a head: the smallest loss that trains all of it.
ValueId mean_loss(Graph& g, ValueId x);

/// The first position of each sequence: [b, h], a view.
ValueId first_token(Graph& g, ValueId x);

}  // namespace shardplan
