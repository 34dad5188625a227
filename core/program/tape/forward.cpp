#include "program/tape/forward.h"

#include <algorithm>
#include <utility>

#include "program/op_rules.h"
#include "program/tape/adapted_experts.h"
#include "program/tape/checkpoint.h"
#include "program/tape/communicate.h"
#include "program/tape/composites.h"
#include "program/tape/functions.h"
#include "program/tape/fused_kernels.h"
#include "program/tape/generation.h"
#include "program/tape/int8_product.h"
#include "program/tape/key_blocks.h"
#include "program/tape/left_names.h"
#include "program/tape/lent_results.h"
#include "program/tape/narrow.h"
#include "program/tape/tiles.h"
#include "program/tape/widened.h"

namespace shardplan::tape {
namespace {

/// What saves of its results, statistics and masks too, has run when it does; so has a function
/// written in Python (torch/csrc/autograd/python_function.cpp, process_outputs).
bool saves_when_run(const GraphView& view, const Op& op) {
  const bool in_python = op.fused != nullptr || op.kind == OpKind::function ||
                         view.multiplies_narrow(op) ||
                         (op.kind == OpKind::linear && view.regime().zero3_linear);
  return in_python || save_rule(op.kind).output || op.kind == OpKind::layer_norm ||
         op.kind == OpKind::dropout;
}

/// Views that PyTorch makes beside the kernels of an operation: only a dispatch mode notices them.
std::int32_t views_beside(OpKind kind) {
  switch (kind) {
    case OpKind::linear:
      return 3;
    case OpKind::sdpa:
      return 8;
    default:
      return 0;
  }
}

/// What returns the embeddings of words; positions come after them.
const Op* words_module(const Graph& graph) {
  const std::vector<Op>& ops = graph.ops();
  const auto table = std::find_if(ops.begin(), ops.end(),
                                  [](const Op& op) { return op.kind == OpKind::embedding; });
  if (table == ops.end()) return nullptr;
  const auto scaled = std::find_if(
      table, ops.end(), [&](const Op& op) { return op.scales_rows && op.in[0] == table->out; });
  return scaled == ops.end() ? &*table : &*scaled;
}

}  // namespace

void ForwardPass::run() {
  const std::size_t count = p_.graph().ops().size();
  starts_.reserve(count);
  auto tiles = p_.tiles.begin();
  for (std::size_t i = 0; i < count; ++i) {
    if (tiles != p_.tiles.end() && tiles->begin == i) {
      tiled_forward(p_, *tiles);
      i = tiles->end - 1;
      // The function keeps its input when it has run.
      starts_.resize(tiles->end, p_.writer.mark());
      ++tiles;
    } else {
      starts_.push_back(p_.writer.mark());
      step(i);
    }
    lend_result(p_, p_.graph().ops()[i].out);
    drop_names(i);
  }
  p_.writer.flush();
  end();
}

void ForwardPass::step(std::size_t i) {
  const TapeWriter::Mark before = p_.writer.mark();
  const std::int32_t saved = p_.saved.times();
  run_operation(i);
  if (p_.graph().ops()[i].kind == OpKind::to_like)
    p_.storages.unref(std::exchange(called_with_, kExternal));
  if (!p_.kept_results.empty())
    dispatch_in_python(p_.graph().ops()[i], before, p_.saved.times() - saved);
}

/// A policy's modes see every operation, also those of views, before it runs and before its kept
/// result is taken (torch/utils/checkpoint.py, _CachingTorchDispatchMode,
/// _CachedTorchDispatchMode). A linear is four: its weight's transpose, a product, and a view
/// before and after it. Queries, keys, values and what attention makes of them are each viewed by
/// heads and transposed; a turn of queries or keys in the graph counts for a table of the rotation,
/// which is given a dimension for heads. A recomputation's hook detaches each tensor that is saved
/// (_recomputation_hook), which the mode sees and does not ask about (SAC_IGNORED_OPS).
void ForwardPass::dispatch_in_python(const Op& op, const TapeWriter::Mark& before,
                                     std::int32_t saved) {
  const bool again = p_.mode == TapeMode::redo;
  const DType type = p_.view.state(op.out).dtype;
  Kernel calls = call_kernel(again ? Issue::redispatched : Issue::dispatched, type);
  calls.calls = p_.writer.calls_since(before) + views_beside(op.kind);
  if (calls.calls > 0) p_.writer.launch(calls);
  Kernel detached = call_kernel(Issue::detached, type);
  detached.calls = saved;
  if (again && saved > 0) p_.writer.launch(detached);
}

/// accelerate widens outside of the autocast that it puts around the model's forward
/// (accelerator.py, prepare_model: convert_outputs_to_fp32(autocast(forward))).
bool ForwardPass::widens_output(const Op& op) const {
  const bool trains = p_.mode == TapeMode::keep || p_.mode == TapeMode::discard;
  return trains && op.out == p_.graph().widened();
}

/// The head's forward calls the model's, and makes logits of what that returns.
bool ForwardPass::begins_head(const Op& op) const {
  const std::vector<Op>& ops = p_.graph().ops();
  const auto first = std::find_if(ops.begin(), ops.end(),
                                  [&](const Op& o) { return p_.graph().value(o.out).logits; });
  return (p_.mode == TapeMode::keep || p_.mode == TapeMode::discard) && first != ops.end() &&
         &op == &*first;
}

void ForwardPass::run_operation(std::size_t i) {
  const Op& op = p_.graph().ops()[i];
  ValueState& out = p_.view.state(op.out);
  out.needs_grad = p_.view.needs_grad(op);
  out.dtype = p_.view.result_type(op);
  if (op.module != kNone)
    p_.writer.emit(TapeEvent::Kind::fetch, Category::gathered_parameters, op.module, 0);
  if (begins_head(op)) p_.writer.emit(TapeEvent::Kind::model_returns, Category::other, 0, 0);
  if (widens_output(op)) p_.writer.emit(TapeEvent::Kind::autocast_ends, Category::other, 0, 0);
  if (p_.view.is_alias(op, p_.mode)) return alias(op);
  if (op.kind == OpKind::communicate) return communicate_forward(p_, op);
  if (op.kind == OpKind::batch && out.dtype == DType::f32) return;
  if (op.kind != OpKind::parameter) compute(i);
  if (op.module != kNone || op.kind == OpKind::parameter)
    p_.writer.emit(TapeEvent::Kind::release, Category::gathered_parameters, op.module, 0);
}

void ForwardPass::alias(const Op& op) {
  const ValueState& in = p_.view.state(op.in[0]);
  ValueState& out = p_.view.state(op.out);
  out.storage = in.storage;
  out.shared = in.shared;
  p_.storages.ref(out.storage);
  if (is_cast(op.kind)) out.same = op.in[0];
  out.sliced = in.sliced || p_.view.count_of(op.out) < p_.view.count_of(op.in[0]);
  p_.writer.launch(call_kernel(Issue::python, out.dtype));
}

void ForwardPass::compute(std::size_t i) {
  const Op& op = p_.graph().ops()[i];
  ValueState& out = p_.view.state(op.out);
  p_.offloading.pause(op.kind == OpKind::linear && p_.graph().value(op.out).logits);
  // Autocast casts a call's arguments from the last to the first.
  const StorageId weight =
      op.kind == OpKind::linear
          ? cast_weight(i, GraphView::reads(op, 0) && p_.view.state(op.in[0]).needs_grad)
          : kExternal;
  Operands read = read_inputs(op);
  const DType type = read.count > 0 ? read.type[0] : out.dtype;
  if (p_.view.is_masked(op)) repeat_heads(op, read);
  const bool as_math = op.kind == OpKind::sdpa && p_.view.runs_as_math(op, type);
  const bool attends = op.kind == OpKind::sdpa && !as_math;
  if (as_math) math_attention_forward(p_, i);
  const WidenedWeight widened(
      p_, op,
      p_.mode == TapeMode::infer ? WidenedWeight::Pass::generation : WidenedWeight::Pass::forward);
  const Int8Product int8(p_, op);
  NarrowOperands narrow(p_);
  const bool narrows = p_.view.multiplies_narrow(op);
  const auto joint = narrows ? narrow_inputs_.find(op.in[0]) : narrow_inputs_.end();
  if (narrows) narrow_forward(p_, op, narrow, joint != narrow_inputs_.end());
  if (op.kind == OpKind::fused_linear_loss) fused_loss_forward(p_, i);
  const StorageId mask = mask_that_goes(op);
  const StorageId straight =
      op.transposed ? p_.temporary(p_.view.extent_of(op.in[0]), type) : kExternal;

  make_result(op, read, attends, type);
  const std::array<StorageId, 2> places = temporaries_of_places(op);
  if (attends && p_.mode == TapeMode::discard && p_.keeps_result(op))  // the log-sum-exp too
    p_.allocate_result(op, checked_mul(elements(op.side, p_.view.sizes()), 4));
  if (op.kind == OpKind::function) {
    function_forward(p_, i);
  } else if (out.needs_grad && p_.keeps()) {
    save_for_backward(p_, i, read, as_math);
  }
  if (out.needs_grad && p_.keeps())
    save_narrow(i, joint != narrow_inputs_.end() ? joint->second : narrow.kept());
  p_.offloading.pause(false);
  if (is_told(op)) {
    p_.saved.hold(out.storage);
    out.needs_grad = op.out != p_.graph().output();  // what is made of it has a graph
  }
  if (p_.saved.end() > i) p_.unread.read_until(saves_when_run(p_.view, op) ? i + 1 : i);
  if (op.kind == OpKind::linear) hold_input(op, read.storage[0]);

  const bool blocks = attends && op.key_blocks > 1;
  const bool rings = attends && op.exchange.forward == Exchange::ring;
  if (rings && op.key_blocks == 1) ring(p_, op, 1);
  if (blocks) attend_blocks_forward(p_, op);
  if (p_.mode == TapeMode::infer) allocate_side_results(p_, op, attends, type);
  for (std::size_t k = 0; k < read.count; ++k) p_.storages.unref(read.storage[k]);
  p_.storages.unref(weight);
  for (const StorageId id : places) p_.storages.unref(id);
  p_.storages.unref(mask);
  p_.storages.unref(straight);
  launch(op, type);
  if (rings || blocks) p_.writer.wait();
}

/// Of attention image by image, or window by window, each has a result of its own.
void ForwardPass::make_result(const Op& op, const Operands& read, bool attends, DType type) {
  ValueState& out = p_.view.state(op.out);
  if (op.kind == OpKind::cache) return append_to_cache(p_, op);
  if (writes_input(op)) return p_.storages.ref(out.storage = read.storage[0]);
  const std::int64_t bytes = p_.view.bytes_of(op.out, out.dtype);
  const std::int64_t pieces =
      attends && op.one_by_one ? attention_kernel(p_.view, op, type).calls : 1;
  out.storage = pieces > 1 ? p_.storages.allocate_pieces(bytes, p_.view.category_of(op.out), pieces)
                           : p_.allocate_result(op, bytes);
}

void ForwardPass::save_narrow(std::size_t i, const std::vector<StorageId>& kept) {
  for (const StorageId id : kept) p_.saved.save(i, id);
  if (p_.options.casts_once && !kept.empty())
    narrow_inputs_.emplace(p_.graph().ops()[i].in[0], kept);
}

/// Beside its result CUDA's masked_scatter has the sums of the mask before each element, in int64,
/// and the mask as large as that (aten/src/ATen/native/cuda/IndexKernel.cu).
std::array<StorageId, 2> ForwardPass::temporaries_of_places(const Op& op) {
  if (op.kind != OpKind::place_elements) return {kExternal, kExternal};
  const std::int64_t count = elements(p_.view.extent_of(op.out), p_.view.sizes());
  const Category category = p_.view.category_of(op.out);
  const StorageId sums = p_.storages.allocate(checked_mul(count, 8), category);
  return {sums, p_.storages.allocate(count, category)};
}

/// native_dropout makes a mask of one byte an element, also where nobody keeps it.
StorageId ForwardPass::mask_that_goes(const Op& op) {
  if (op.kind != OpKind::dropout || p_.mode == TapeMode::infer) return kExternal;
  if (p_.view.state(op.out).needs_grad && p_.keeps()) return kExternal;
  return p_.storages.allocate(elements(p_.view.extent_of(op.out), p_.view.sizes()),
                              p_.view.category_of(op.out));
}

/// An input is read as it is, or from a copy that autocast makes for this operation.
Operands ForwardPass::read_inputs(const Op& op) {
  Operands read;
  while (GraphView::reads(op, read.count)) ++read.count;
  for (std::size_t k = read.count; k-- > 0;) {
    const ValueState& in = p_.view.state(op.in[k]);
    const DType type = p_.view.read_type(op, k);
    read.type[k] = type;
    if (op.fused != nullptr && in.sliced) {
      read.storage[k] = contiguous(op, k, type);
      continue;
    }
    if (type == in.dtype) {
      p_.storages.ref(in.storage);
      read.storage[k] = in.storage;
      continue;
    }
    p_.writer.launch(
        cast_kernel(p_.view, p_.view.extent_of(op.in[k]), in.dtype, type, Issue::nested));
    read.storage[k] =
        p_.storages.allocate(p_.view.bytes_of(op.in[k], type), p_.view.category_of(op.in[k]));
  }
  return read;
}

/// Liger's kernels read whole rows: of a slice they make a copy (ensure_contiguous).
StorageId ForwardPass::contiguous(const Op& op, std::size_t k, DType type) {
  const double bytes = 2 * p_.view.moved(op.in[k], type);
  p_.writer.launch(
      memory_kernel(KernelKind::strided, Issue::nested, type, bytes, p_.view.count_of(op.in[k])));
  return p_.storages.allocate(p_.view.bytes_of(op.in[k], type), p_.view.category_of(op.in[k]));
}

/// Grouped keys and values go to the fused kernel as they are only where there is no mask
/// (transformers/integrations/sdpa_attention.py, use_gqa_in_sdpa). One head is expanded to all
/// without a copy: a reshape that joins a dimension of one with an expanded one is a view.
/// Autocast's cast of that view has all of them.
void ForwardPass::repeat_heads(const Op& op, Operands& read) {
  const DType type = read.type[0];
  const std::int64_t width = p_.view.extent_of(op.in[0]).per;
  const std::int64_t grouped_width = p_.view.extent_of(op.in[1]).per;
  if (grouped_width >= width) return;
  const bool one_head = width / grouped_width == op.side.per;
  for (std::size_t k = 1; k < read.storage.size(); ++k) {
    if (one_head && p_.view.state(op.in[k]).dtype == read.type[k]) continue;
    const Extent grouped = p_.view.extent_of(op.in[k]);
    const StorageId all = p_.storages.allocate(
        p_.view.bytes_of({grouped.per * (width / grouped_width), grouped.scale}, type),
        p_.view.category_of(op.out));
    const auto bytes = static_cast<double>(p_.storages.of(all).bytes);
    p_.writer.launch(memory_kernel(KernelKind::strided, Issue::python, type, 2 * bytes,
                                   bytes / static_cast<double>(size_of(type))));
    p_.storages.unref(read.storage[k]);
    read.storage[k] = all;
  }
}

/// Autocast reads a copy of each fp32 weight; copies of leaf parameters are cached until the
/// outermost autocast ends, and the node keeps one while its input needs a gradient. Falcon's own
/// class multiplies by a view of its weight, which is no leaf (transformers 5.17,
/// modeling_falcon.py, FalconLinear).
StorageId ForwardPass::cast_weight(std::size_t i, bool input_needs_grad) {
  const Op& op = p_.graph().ops()[i];
  const Parameter& w = p_.view.parameter(op.weight);
  const Regime& regime = p_.view.regime();
  if (!p_.view.casts_weight(op)) return kExternal;
  const std::int64_t bytes = p_.view.bytes_of(w, regime.compute);
  const Kernel cast = weight_cast_kernel(w, p_.view.parameter_type(op.weight), regime.compute);
  if (regime.zero3_linear) {
    p_.writer.launch(cast);
    return p_.storages.allocate(bytes, Category::other);
  }
  const bool caches = w.trainable && !w.derived_linear;
  StorageId copy = p_.casts.find(op.weight);
  if (w.trainable && p_.options.casts_given) return kExternal;
  if (copy == kExternal) {
    copy = p_.storages.allocate(bytes, Category::other);
    p_.writer.launch(cast);
    if (caches) p_.casts.add(op.weight, copy);
  }
  if (p_.keeps() && input_needs_grad) p_.saved.save(i, copy);
  return caches ? kExternal : copy;
}

void ForwardPass::launch(const Op& op, DType type) {
  if (p_.mode == TapeMode::redo && p_.keeps_result(op))  // what calls it runs all the same
    return p_.writer.launch(
        call_kernel(op.kind == OpKind::linear ? Issue::linear : Issue::python, type));
  if (adapts_experts(op)) return launch_adapted_experts(p_, op, type);
  if (op.kind != OpKind::linear && op.kind != OpKind::grouped_linear) {
    if (op.fused != nullptr && op.fused->host_reads) host_reads_labels(p_);
    if (op.one_by_one) host_reads_lengths();
    if (host_reads_places(op.kind)) p_.writer.host_waits();
    if (const Op* stored = unpacked_by(p_.view, op))
      return p_.writer.launch(widening_kernels(p_.view, *stored, Issue::fused));
    for (const ParameterId id : widened_parameters(p_.view, op))
      p_.writer.launch(weight_cast_kernel(p_.view.parameter(id), p_.view.parameter_type(id), type));
    p_.writer.launch(forward_kernels(p_.view, op, type, p_.keeps()));
    return;
  }
  if (p_.mode != TapeMode::infer) p_.writer.launch(widening_kernels(p_.view, op, Issue::fused));
  p_.writer.launch(routing_kernels(p_.view, op, Issue::python));
  launch_product(op, type);
  if (casts_bias(p_.view, op))
    p_.writer.launch(
        weight_cast_kernel(p_.view.parameter(op.bias), p_.view.parameter_type(op.bias), type));
}

/// What queries, keys and values are each split by: lengths.tolist(), of a tensor on the GPU
/// (transformers 5.17, models/qwen2_5_vl/modeling_qwen2_5_vl.py). The second and third find it
/// idle.
void ForwardPass::host_reads_lengths() {
  p_.writer.python_calls(2);
  p_.writer.host_waits();
  p_.writer.python_calls(5);
}

/// Frozen embeddings whose output is told to need a gradient: a leaf, which its accumulator holds
/// as long as the graph, whatever is made of it (peft, enable_input_require_grads).
bool ForwardPass::is_told(const Op& op) const {
  return p_.mode == TapeMode::keep && p_.options.output_is_told &&
         !p_.view.state(op.out).needs_grad && &op == words_module(p_.graph());
}

/// bitsandbytes': Linear4bit has a name for what it multiplies (called_with_). MatMul8bitLt keeps
/// its input as an attribute, not as a saved tensor; the chained one belongs to the caller.
void ForwardPass::hold_input(const Op& op, StorageId input) {
  const std::size_t next = p_.place_of(op) + 1;
  const bool casts_back = next < p_.graph().ops().size() &&
                          p_.graph().ops()[next].kind == OpKind::to_like &&
                          p_.graph().ops()[next].in[0] == op.out;
  if (casts_back && p_.view.parameter(op.weight).widened()) p_.storages.ref(called_with_ = input);
  if (!p_.view.multiplies_int8(op)) return;
  const bool graph = p_.mode != TapeMode::infer && p_.view.state(op.in[0]).needs_grad;
  if (graph && input != kExternal && p_.storages.of(input).slot != kChainedInputSlot)
    p_.saved.hold(input);
  if (graph)
    p_.run.outliers_at_most =
        std::max(p_.run.outliers_at_most, p_.view.bytes_of(op.in[0], p_.view.read_type(op, 0)));
}

namespace {

/// Experts are a function's work, all others modules of their own.
Kernel called(const Op& op, Kernel product) {
  if (op.kind == OpKind::linear) product.issue = Issue::linear;
  return product;
}

}  // namespace

void ForwardPass::launch_product(const Op& op, DType type) {
  if (multiplies_one_by_one(p_.view, op, type)) {
    p_.writer.launch(call_kernel(Issue::python, type));
    p_.writer.host_waits();
    p_.writer.launch(one_by_one(product_kernel(p_.view, op, type)));
    return;
  }
  if (!p_.view.multiplies_int8(op) || p_.mode == TapeMode::infer)
    return p_.exchanges.launch_forward(op, called(op, product_kernel(p_.view, op, type)));
  launch_int8(p_, op);
}

void ForwardPass::drop_names(std::size_t i) {
  while (next_end_ < ends_.size() && ends_[next_end_].after <= static_cast<std::int32_t>(i))
    p_.storages.unref(p_.view.state(ends_[next_end_++].value).storage);
}

/// A checkpoint's recomputation stops when the last tensor has been saved: what an operation saves
/// of its inputs is saved before it runs (torch/utils/checkpoint.py, early stop).
void ForwardPass::stop_early() {
  const std::size_t last = p_.saved.end();
  if (last == 0) return;
  const std::size_t end = saves_when_run(p_.view, p_.graph().ops()[last - 1]) ? last : last - 1;
  if (end >= starts_.size()) return;
  p_.writer.cut_off(starts_[end]);
  const Op& cut = p_.graph().ops()[end];
  if (p_.kept_results.empty() || cut.kind != OpKind::linear) return;
  // What it would save is viewed before: its input and its weight.
  Kernel views = call_kernel(Issue::redispatched, p_.view.state(cut.in[0]).dtype);
  views.calls = 2;
  p_.writer.launch(views);
}

void ForwardPass::export_output() {
  if (p_.graph().output() == kNone) return;
  const ValueState& out = p_.view.state(p_.graph().output());
  p_.run.output_dtype = out.dtype;
  p_.run.output_needs_grad = out.needs_grad;
  if (out.storage == kExternal) return;
  p_.run.output_bytes = p_.storages.of(out.storage).bytes;
  if (p_.mode != TapeMode::redo) {
    p_.storages.set_exported(out.storage);
    p_.run.output_slot = p_.storages.of(out.storage).slot;
  } else if (!reenters(p_.options)) {
    p_.storages.unref(out.storage);  // the recomputed output is not needed
  }
}

void ForwardPass::end() {
  const bool redo = p_.mode == TapeMode::redo;
  // The nodes of a recomputation go with it; the others' hold on.
  if (redo) p_.saved.let_go();
  lend_graph(p_);
  export_output();
  if (!p_.options.last_segment) p_.run.forward_tail = p_.offloading.leave_sending();
  if (p_.modules.active()) p_.run.forward_tail = p_.modules.leave_sending();
  p_.run.until_autocast_ends = p_.casts.close(p_.storages, redo);
  leave_to_output(p_);
  leave_beside(p_);
  if (redo && stops_early(p_.options)) stop_early();
  if (p_.mode == TapeMode::discard) CheckpointedInput(p_).replace();
  leave_to_model(p_);
  if (recomputation_frees_input(p_.graph(), p_.mode, p_.options))
    p_.storages.unref(p_.view.state(p_.view.chained_input()).storage);
  // A checkpointed segment keeps its input for the recomputation; the backward pass drops it.
  if ((p_.mode != TapeMode::keep && p_.mode != TapeMode::infer) || p_.graph().lets_input_go())
    return;
  for (const Input& in : p_.graph().inputs())
    if (in.kind == InputKind::chained) p_.storages.unref(p_.view.state(in.value).storage);
}

}  // namespace shardplan::tape
