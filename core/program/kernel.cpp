#include "program/kernel.h"

namespace shardplan {

std::string_view name_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::none:
      return "none";
    case KernelKind::product:
      return "product";
    case KernelKind::attention:
      return "attention";
    case KernelKind::attention_backward:
      return "attention_backward";
    case KernelKind::elementwise:
      return "elementwise";
    case KernelKind::strided:
      return "strided";
    case KernelKind::concatenate:
      return "concatenate";
    case KernelKind::row_reduction:
      return "row_reduction";
    case KernelKind::column_sum:
      return "column_sum";
    case KernelKind::layer_norm:
      return "layer_norm";
    case KernelKind::layer_norm_backward:
      return "layer_norm_backward";
    case KernelKind::softmax:
      return "softmax";
    case KernelKind::softmax_backward:
      return "softmax_backward";
    case KernelKind::log_softmax_backward:
      return "log_softmax_backward";
    case KernelKind::embedding:
      return "embedding";
    case KernelKind::embedding_backward:
      return "embedding_backward";
    case KernelKind::multi_tensor:
      return "multi_tensor";
    case KernelKind::blockwise_update:
      return "blockwise_update";
    case KernelKind::triton_pointwise:
      return "triton_pointwise";
    case KernelKind::triton_reduction:
      return "triton_reduction";
  }
  return "";
}

std::string_view name_of(Issue issue) {
  switch (issue) {
    case Issue::python:
      return "python";
    case Issue::nested:
      return "nested";
    case Issue::autograd:
      return "autograd";
    case Issue::inner:
      return "inner";
    case Issue::linear:
      return "linear";
    case Issue::linear_node:
      return "linear_node";
    case Issue::checkpoint:
      return "checkpoint";
    case Issue::recompute:
      return "recompute";
    case Issue::listed:
      return "listed";
    case Issue::sharded:
      return "sharded";
    case Issue::loop:
      return "loop";
    case Issue::hook:
      return "hook";
    case Issue::engine:
      return "engine";
    case Issue::bucket:
      return "bucket";
    case Issue::module:
      return "module";
    case Issue::waited:
      return "waited";
    case Issue::graph:
      return "graph";
    case Issue::dispatched:
      return "dispatched";
    case Issue::redispatched:
      return "redispatched";
    case Issue::detached:
      return "detached";
    case Issue::fused:
      return "fused";
    case Issue::narrow:
      return "narrow";
    case Issue::guard:
      return "guard";
    case Issue::fused_node:
      return "fused_node";
    case Issue::library:
      return "library";
    case Issue::launch:
      return "launch";
  }
  return "";
}

}  // namespace shardplan
