// Values that a segment's forward pass leaves with names that others hold.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// What the model's forward names outlives the segment, unless autograd keeps it.
void leave_to_model(Parts& p);

/// What the model's output names: it goes when the forward pass is over, unless autograd keeps it.
void leave_to_output(Parts& p);

/// What it returns beside its output: the next one drains it, unless autograd keeps it.
void leave_beside(Parts& p);

}  // namespace shardplan::tape
