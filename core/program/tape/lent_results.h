// What a checkpoint's recomputation leaves behind where a dictionary takes results of it
// (Graph::lend): no backward pass goes through its graph behind them, which keeps what it saved
// until the whole backward pass is over (torch/utils/checkpoint.py, without reentrance).
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// `value` has been made: the dictionary has it, where it takes it.
void lend_result(Parts& p, ValueId value);

/// The recomputation has run.
void lend_graph(Parts& p);

/// The segment's input is let go; that graph still refers to it, if it saved it.
void lend_input(Parts& p);

}  // namespace shardplan::tape
