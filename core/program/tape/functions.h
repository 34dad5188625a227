// Functions that a graph describes as a whole (model/function.h): what they allocate, keep and
// free, and their kernels.
#pragma once

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// Keeps what the function keeps, if autograd is on, and writes down what lives while it runs. Its
/// result is there already.
void function_forward(Parts& p, std::size_t i);

/// Gradients of its inputs and of what joins them (Graph::join).
void function_backward(Parts& p, std::size_t i);

KernelList function_kernels(const GraphView& view, const Op& op, const FunctionPass& pass,
                            Issue issue);

}  // namespace shardplan::tape
