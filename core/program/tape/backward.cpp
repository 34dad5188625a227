#include "program/tape/backward.h"

#include <algorithm>
#include <optional>

#include "program/op_rules.h"
#include "program/tape/adapted_experts.h"
#include "program/tape/checkpoint.h"
#include "program/tape/composites.h"
#include "program/tape/functions.h"
#include "program/tape/fused_kernels.h"
#include "program/tape/in_place.h"
#include "program/tape/int8_product.h"
#include "program/tape/key_blocks.h"
#include "program/tape/lent_results.h"
#include "program/tape/narrow.h"
#include "program/tape/row_sums.h"
#include "program/tape/tiles.h"
#include "program/tape/widened.h"

namespace shardplan::tape {

/// torch.utils.checkpoint computes again where a node first asks for what it has saved: those
/// behind it have run by then.
void BackwardPass::run() {
  const TapeWriter::Mark recomputed = p_.writer.mark();
  std::size_t i = p_.graph().ops().size();
  begin();
  if (p_.mode == TapeMode::redo && !reenters(p_.options)) {
    while (i > p_.saved.end()) step(--i);
    p_.writer.move_to_front(recomputed);
  }
  while (i > 0) step(--i);
  p_.ask_for_workspace();  // a fused head has multiplied in the forward pass: blocks are the first
  p_.writer.flush();
  end();
}

/// The next segment's backward left the gradient of our output; for the loss it is a scalar.
void BackwardPass::begin() {
  p_.writer.begin_backward();
  if (p_.mode == TapeMode::keep) first_slot_ = p_.storages.slots();
  p_.gradients.begin();
  p_.modules.begin_backward();
  const ValueId output = p_.graph().output();
  if (output == kNone) return;
  const StorageId id =
      p_.storages.adopt(p_.run.output_bytes, kChainedGradientSlot, Category::activations);
  if (p_.mode == TapeMode::redo && reenters(p_.options)) held_gradient_ = id;
  p_.storages.ref(held_gradient_);
  if (p_.view.state(output).needs_grad) {
    p_.gradients.set(output, id);
  } else if (p_.options.output_gets_grad) {
    p_.storages.unref(id);
  }
}

void BackwardPass::step(std::size_t i) {
  const Op& op = p_.graph().ops()[i];
  // Embeddings that were told to need a gradient are a leaf, which has no node.
  const bool looks_up = op.kind == OpKind::embedding || op.scales_rows;
  const bool leaf = looks_up && !p_.view.needs_grad(op);
  const bool runs = p_.view.state(op.out).needs_grad && !leaf && p_.gradients.has(op.out);
  const TiledPart* part = runs ? tiled_part_ending(p_.tiles, i + 1) : nullptr;
  if (part != nullptr) {
    tiled_backward(p_, *part);
    p_.saved.release(i);
    p_.gradients.drop(op.out);
    p_.gradients.settle();
    return p_.gradients.hand_over();
  }
  if (runs) {
    if (op.module != kNone)
      p_.writer.emit(TapeEvent::Kind::fetch, Category::gathered_parameters, op.module, 0);
    p_.saved.bring_back(i);
    p_.offloading.begin_node();
    launch(op);
    node_ = i;
    differentiate(i, p_.gradients.storage(op.out));
  }
  p_.saved.release(i);
  if (i == p_.saved.begin() && !p_.saved.lends_input()) release_input();
  if (runs && p_.offloading.active()) p_.offloading.end_node();
  p_.gradients.drop(op.out);
  p_.gradients.settle();
  p_.gradients.hand_over();
  run_casts();
  p_.gradients.settle();
  if (runs && op.module != kNone)
    p_.writer.emit(TapeEvent::Kind::release, Category::gathered_parameters, op.module, 0);
}

void BackwardPass::launch(const Op& op) {
  if (adapts_experts(op)) return launch_adapted_experts_backward(p_, op);
  if (op.kind != OpKind::linear && op.kind != OpKind::grouped_linear) {
    if (op.fused != nullptr && op.fused->host_reads) host_reads_gradient(p_);
    if (host_reads_places(op.kind)) p_.writer.host_waits();
    p_.writer.launch(backward_kernels(p_.view, op));
    return;
  }
  const DType type = op.in[0] != kNone ? p_.view.read_type(op, 0) : p_.view.state(op.out).dtype;
  if (op.in[0] != kNone && p_.view.state(op.in[0]).needs_grad) {
    p_.writer.launch(widening_kernels(p_.view, op, Issue::fused_node));
    p_.writer.launch(int8_widening(p_.view, op, Issue::fused_node));
  }
  const LinearBackwardKernels kernels = linear_backward_kernels(p_.view, op, type);
  if (multiplies_one_by_one(p_.view, op, type))
    launch_one_by_one(kernels);
  else
    p_.exchanges.launch_backward(op, kernels);
  p_.writer.launch(routing_kernels(p_.view, op, Issue::autograd));
}

void BackwardPass::launch_one_by_one(const LinearBackwardKernels& kernels) {
  for (const std::optional<Kernel>& product : {kernels.input, kernels.weight}) {
    if (!product) continue;
    p_.writer.launch(call_kernel(product->issue, product->type));
    p_.writer.host_waits();
    p_.writer.launch(one_by_one(*product));
  }
  if (kernels.bias) p_.writer.launch(*kernels.bias);
}

/// Allocates and hands on the gradients of what the op read. `g`: of its result.
void BackwardPass::differentiate(std::size_t i, StorageId g) {
  const Op& op = p_.graph().ops()[i];
  if (op.fused != nullptr && op.kind != OpKind::fused_linear_loss)
    return fused_kernel_backward(p_, i, g);
  if (writes_view(op)) return written_view_backward(p_, op);
  switch (op.kind) {
    case OpKind::grouped_linear:
      if (op.in[1] != kNone) {  // biases were added in place: the gradient is theirs too
        p_.storages.ref(g);
        p_.gradients.give(op.in[1], g);
      }
      return linear(op);
    case OpKind::linear:
      return linear(op);
    case OpKind::sdpa:
      return attention(op);
    case OpKind::function:
      return function_backward(p_, i);
    case OpKind::communicate:
      return communicate_backward(p_, op, g);
    case OpKind::fused_linear_loss:
      return fused_loss_backward(p_, i);
    case OpKind::vocabulary_loss:
      return vocabulary_loss_backward(p_, i);
    case OpKind::embedding:
      return give_table(p_, op);
    case OpKind::parameter:
      return p_.gradients.give_parameter(op.weight);
    case OpKind::softmax:
    case OpKind::softmax_f32:
      return softmax(op, g);
    case OpKind::place_elements:
    case OpKind::place_rows:
      return places(op);
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      norm(op, g);
      for (const ParameterId id : widened_parameters(p_.view, op))
        if (p_.view.trains(id)) p_.writer.launch(cast_back_kernel(p_.view, id, DType::f32));
      p_.gradients.give_parameter(op.weight);
      p_.gradients.give_parameter(op.bias);
      return;
    default:
      elementwise(op, g);
  }
}

void BackwardPass::linear(const Op& op) {
  // Without an input value the op reads the batch itself (pixels, audio features).
  const ValueId in = op.in[0];
  const bool input_grad = in != kNone && p_.view.state(in).needs_grad;
  const bool autocast =
      p_.view.casts(op) && op.kind == OpKind::linear && !p_.view.parameter(op.weight).quantized();
  const DType low = autocast                      ? p_.view.regime().compute
                    : p_.view.multiplies_int8(op) ? p_.view.read_type(op, 0)
                                                  : p_.view.parameter_type(op.weight);
  const StorageId gathered = p_.view.trains(op.weight) ? kept_.gather(p_, op, low) : kExternal;
  StorageId dx = kExternal;
  NarrowOperands operands(p_);
  const bool narrow = p_.view.multiplies_narrow(op);
  // What takes it has it when the node is done: until then the tape holds its place.
  const bool weight_first = makes_weight_first(op) && !narrow;
  StorageId place = kExternal;
  if (weight_first) {
    if (low == p_.view.parameter_type(op.weight)) {
      place = p_.storages.allocate(p_.view.bytes_of(p_.view.parameter(op.weight), low),
                                   Category::gradients);
    } else {
      weight_of_linear(op, low);
    }
    p_.ask_for_workspace();
  }
  if (input_grad) {
    if (narrow) narrow_for_input(p_.view, op, operands);
    const WidenedWeight widened(p_, op, WidenedWeight::Pass::backward);
    const StorageId int8 = widened_int8(p_, op);
    dx = p_.gradients.allocate_like(in, low);
    p_.storages.unref(int8);
    operands.end_product();
  }
  p_.ask_for_workspace();
  if (op.kept != kNone) p_.writer.wait();
  if (narrow && p_.view.trains(op.weight)) narrow_for_weight(p_.view, op, operands);
  p_.storages.unref(place);
  if (!weight_first || place != kExternal) weight_of_linear(op, low);
  operands.end_product();
  p_.storages.unref(gathered);
  bias_of_linear(op);
  if (!input_grad) return;
  if (low != p_.view.state(in).dtype) {
    casts_.push_back({in, kNone, dx, low});
  } else if (folds_rows(op)) {
    p_.gradients.give_view(in, dx);
  } else {
    p_.gradients.give(in, dx);
  }
}

/// TapeOptions::autograd_products.
bool BackwardPass::makes_weight_first(const Op& op) const {
  return p_.options.autograd_products && !p_.view.regime().zero3_linear &&
         op.kind == OpKind::linear && op.bias == kNone && p_.view.trains(op.weight) &&
         !p_.view.parameter(op.weight).quantized() && !p_.view.multiplies_int8(op);
}

/// torch.nn.functional.linear folds the batch and the sequence of its input into rows, and the
/// input's gradient is a view of the product. Functions of libraries multiply as they are given it.
bool BackwardPass::folds_rows(const Op& op) const {
  return op.kind == OpKind::linear && !p_.view.regime().zero3_linear &&
         p_.view.extent_of(op.in[0]).scale == Scale::tokens &&
         !p_.view.parameter(op.weight).quantized() && !p_.view.multiplies_int8(op) &&
         !p_.view.multiplies_narrow(op) && !p_.options.module_calls;
}

void BackwardPass::bias_of_linear(const Op& op) {
  if (op.bias == kNone || !p_.view.trains(op.bias)) return;
  // addmm's bias gets the result's gradient itself. It is summed when the node has returned and
  // let go what it unpacked (torch/csrc/autograd/engine.cpp, validate_outputs).
  const bool sums_later = op.kind == OpKind::linear && !p_.view.regime().zero3_linear &&
                          !p_.view.parameter(op.weight).quantized() &&
                          !p_.view.multiplies_int8(op) && !p_.view.multiplies_narrow(op);
  if (sums_later && unpacks()) p_.saved.release(node_);
  const std::int64_t columns = p_.view.parameter(op.bias).numel;
  sum_rows(p_, elements(p_.view.extent_of(op.out), p_.view.sizes()) / columns, columns);
  if (casts_bias(p_.view, op))
    p_.writer.launch(cast_back_kernel(p_.view, op.bias, p_.view.regime().compute));
  p_.gradients.give_parameter(op.bias);
}

/// The gradient of the weight, in the type of the product: `low`.
void BackwardPass::weight_of_linear(const Op& op, DType low) {
  if (!p_.view.trains(op.weight)) return;
  if (low == p_.view.parameter_type(op.weight)) return p_.gradients.give_parameter(op.weight);
  const std::int64_t bytes = p_.view.bytes_of(p_.view.parameter(op.weight), low);
  casts_.push_back({kNone, op.weight, p_.storages.allocate(bytes, Category::gradients), low});
}

/// dq, dk, dv; then the kernel's workspace: an fp32 accumulator of dq, the head rounded up to 32,
/// an fp32 row sum, and dk, dv of all query heads when they share keys. cuDNN asks for it at once,
/// as histories of allocations on H100 and H200 show; FlashAttention one by one
/// (flash_attn/flash_api.cpp).
void BackwardPass::attention(const Op& op) {
  const DType low = p_.view.read_type(op, 0);
  if (p_.view.runs_as_math(op, low)) return math_attention_backward(p_, op);
  std::optional<BlocksBackward> blocks;
  if (op.key_blocks > 1) {
    blocks.emplace(p_, op);
  } else if (op.exchange.backward == Exchange::ring) {
    ring(p_, op, 2);
    p_.writer.wait();
  }
  const std::int64_t heads = op.side.per;
  const std::int64_t head_dim = p_.view.extent_of(op.in[0]).per / heads;
  std::array<StorageId, 3> gradients{};
  for (std::size_t k = 0; k < 3; ++k) gradients[k] = p_.gradients.allocate_like(op.in[k], low);
  std::int64_t workspace =
      checked_add(p_.view.bytes_of({heads * round_up(head_dim, 32), op.side.scale}, DType::f32),
                  p_.view.bytes_of(op.side, DType::f32));
  const Extent keys = p_.view.extent_of(op.in[1]);
  if (keys.per < heads * head_dim)
    workspace = checked_add(workspace, 2 * p_.view.bytes_of({heads * head_dim, keys.scale}, low));
  p_.storages.unref(p_.temporary_bytes(workspace));
  scores_bias(op, low);
  if (blocks) blocks->release();
  for (std::size_t k = 0; k < 3; ++k) give_from(op, k, gradients[k]);
}

/// The kernel writes a mask's gradient for the whole batch; it is summed to the mask's own size.
void BackwardPass::scores_bias(const Op& op, DType low) {
  if (op.scores_bias == kNone || !p_.view.state(op.scores_bias).needs_grad) return;
  const StorageId batch = p_.temporary({op.side.per, op.work.scale}, low);
  const StorageId sum =
      p_.gradients.allocate_like(op.scores_bias, p_.view.state(op.scores_bias).dtype);
  p_.storages.unref(batch);
  p_.gradients.give(op.scores_bias, sum);
}

/// The kernel writes grad·output beside its result (aten/.../cuda/SoftMax.cu).
void BackwardPass::softmax(const Op& op, StorageId g) {
  const StorageId product = p_.gradients.allocate_like(op.out, p_.view.state(op.out).dtype);
  elementwise(op, g);
  p_.storages.unref(product);
}

/// Of a transposed input the kernel reads a copy, and one of the gradient.
void BackwardPass::norm(const Op& op, StorageId g) {
  StorageId straight = kExternal, turned = kExternal;
  if (op.transposed) {
    straight = p_.temporary(p_.view.extent_of(op.in[0]), p_.view.read_type(op, 0));
    turned = p_.temporary(p_.view.extent_of(op.out), p_.view.state(op.out).dtype);
  }
  elementwise(op, g);
  p_.storages.unref(straight);
  p_.storages.unref(turned);
}

/// Zeros in the places, and what stands there. CUDA's masked_select makes the mask as large as the
/// gradient and lists the places of all elements, by three numbers in int64
/// (aten/src/ATen/native/cuda/Indexing.cu, derivatives.yaml: masked_scatter_backward).
void BackwardPass::places(const Op& op) {
  const auto gradient = [&](std::size_t k) {
    return p_.gradients.allocate_like(op.in[k], p_.view.state(op.in[k]).dtype);
  };
  const bool filled = p_.view.state(op.in[0]).needs_grad;
  const StorageId rest = filled ? gradient(0) : kExternal;
  if (p_.view.state(op.in[1]).needs_grad) {
    const bool lists = op.kind == OpKind::place_elements;
    const std::int64_t all = elements(p_.view.extent_of(op.out), p_.view.sizes());
    const std::int64_t placed = elements(p_.view.extent_of(op.in[1]), p_.view.sizes());
    const StorageId list = lists ? p_.storages.allocate(checked_add(all, checked_mul(placed, 24)),
                                                        p_.view.category_of(op.out))
                                 : kExternal;
    const StorageId values = gradient(1);
    p_.storages.unref(list);
    p_.gradients.give(op.in[1], values);
  }
  if (filled) p_.gradients.give(op.in[0], rest);
}

/// Everything that maps gradients element by element.
void BackwardPass::elementwise(const Op& op, StorageId g) {
  if (op.kind == OpKind::matmul && p_.options.autograd_products) return product(op, g);
  if (op.kind == OpKind::mul) return multiplication(op, g);
  for (std::size_t k = 0; GraphView::reads(op, k); ++k)
    if (p_.view.state(op.in[k]).needs_grad) elementwise_input(op, k, g);
  if (op.kind != OpKind::cat) return;
  for (const Hold& join : p_.graph().joins()) {
    if (join.until != op.out || !p_.view.state(join.value).needs_grad) continue;
    p_.storages.ref(g);
    p_.gradients.give(join.value, g);
  }
}

/// Inputs by their names: other, self (tools/autograd/load_derivatives.py). When the node has
/// returned, the engine gives each gradient its input's shape and type, in the inputs' own order
/// (torch/csrc/autograd/engine.cpp, validate_outputs).
void BackwardPass::multiplication(const Op& op, StorageId g) {
  const DType type = p_.view.state(op.out).dtype;
  std::array<StorageId, 2> wide{kExternal, kExternal};
  for (const std::size_t k : {std::size_t{1}, std::size_t{0}}) {
    const ValueState& in = p_.view.state(op.in[k]);
    if (!in.needs_grad) continue;
    if (broadcasts_factor(p_, op, k) || in.dtype != type)
      wide[k] = p_.gradients.allocate_like(op.out, type);
    else
      elementwise_input(op, k, g);
  }
  if (unpacks()) p_.saved.release(node_);
  for (std::size_t k = 0; k < wide.size(); ++k)
    if (wide[k] != kExternal) fit_to_factor(p_, op, k, wide[k]);
}

/// The second factor's gradient first (BmmBackward0: mat2, self); autocast's casts, if any, are
/// undone from the first factor's on.
void BackwardPass::product(const Op& op, StorageId g) {
  for (const std::size_t k : {std::size_t{1}, std::size_t{0}})
    if (p_.view.state(op.in[k]).needs_grad) elementwise_input(op, k, g);
  std::reverse(casts_.begin(), casts_.end());
}

void BackwardPass::elementwise_input(const Op& op, std::size_t k, StorageId g) {
  const ValueId in = op.in[k];
  const DType out = p_.view.state(op.out).dtype;
  const DType own = p_.view.state(in).dtype;
  const bool same = own == out && elements(p_.view.extent_of(in), p_.view.sizes()) ==
                                      elements(p_.view.extent_of(op.out), p_.view.sizes());
  if (op.turned) {
    p_.writer.launch(memory_kernel(KernelKind::elementwise, Issue::inner, out,
                                   2 * p_.view.moved(in, out), p_.view.count_of(in)));
    give_from(op, k, p_.gradients.allocate_like(in, own));
  } else if (op.kind == OpKind::cat || op.kind == OpKind::sum ||
             (same && passes_gradient(op.kind))) {
    p_.storages.ref(g);
    p_.gradients.give(in, g);
  } else if (op.kind == OpKind::view && !op.cuts && p_.gradients.has(in)) {
    // Parts of one tensor gather their gradients in one buffer; the first makes it.
    p_.writer.launch(memory_kernel(KernelKind::elementwise, Issue::inner, out,
                                   3 * p_.view.moved(in, out), p_.view.count_of(in)));
  } else if (op.kind == OpKind::power || op.kind == OpKind::log_sum_exp ||
             op.kind == OpKind::deviation) {
    // grad·(2·x¹), grad·exp(x − result), grad·(x − mean): what the second factor is made of lives
    // until the expression ends.
    const StorageId part =
        op.kind == OpKind::deviation ? kExternal : p_.gradients.allocate_like(in, out);
    const StorageId factor = p_.gradients.allocate_like(in, out);
    const StorageId product = p_.gradients.allocate_like(in, out);
    p_.storages.unref(part);
    p_.storages.unref(factor);
    give_from(op, k, product);
  } else {
    const StorageId gradient = p_.gradients.allocate_like(in, p_.view.read_type(op, k));
    sum_repeated(p_, op);
    give_from(op, k, gradient);
  }
}

/// Hands the gradient of what the op read to input k, through the cast's backward if there was one.
void BackwardPass::give_from(const Op& op, std::size_t k, StorageId gradient) {
  const ValueId in = op.in[k];
  if (p_.view.state(in).needs_grad && p_.view.read_type(op, k) != p_.view.state(in).dtype) {
    casts_.push_back({in, kNone, gradient, p_.view.read_type(op, k)});
  } else {
    p_.gradients.give(in, gradient);
  }
}

void BackwardPass::run_casts() {
  if (p_.options.autograd_products)  // inputs' first
    std::stable_partition(casts_.begin(), casts_.end(),
                          [](const CastBack& cast) { return cast.weight == kNone; });
  for (const CastBack& cast : casts_) {
    if (cast.weight != kNone) {
      p_.writer.launch(cast_kernel(p_.view, {p_.view.parameter(cast.weight).numel, Scale::one},
                                   cast.type, p_.view.parameter_type(cast.weight),
                                   Issue::autograd));
      p_.gradients.give_parameter(cast.weight);
      p_.storages.unref(cast.gradient);
      p_.gradients.hand_over();
      continue;
    }
    const DType own = p_.view.state(cast.value).dtype;
    const StorageId gradient = p_.gradients.allocate_like(cast.value, own);
    p_.writer.launch(
        cast_kernel(p_.view, p_.view.extent_of(cast.value), cast.type, own, Issue::autograd));
    p_.storages.unref(cast.gradient);
    p_.gradients.give(cast.value, gradient);
    p_.gradients.settle();
  }
  casts_.clear();
}

/// A gradient that the forward pass made, or that is written over what it kept, goes on under a
/// name of the backward pass: the neighbour frees it.
StorageId BackwardPass::renamed(StorageId gradient) {
  const Storage s = p_.storages.of(gradient);
  if (s.slot < 0 || s.slot >= first_slot_) return gradient;
  p_.storages.unref(gradient);
  return p_.storages.allocate(s.bytes, s.category);
}

/// What torch.utils.checkpoint made again is handed to a node once and lives until it returns.
bool BackwardPass::unpacks() const {
  return p_.mode == TapeMode::redo && !reenters(p_.options);
}

/// A checkpoint's arguments are there as long as a node may still ask for what it saved.
void BackwardPass::release_input() {
  const ValueId input = p_.view.chained_input();
  if (!unpacks() || input == kNone || recomputation_frees_input(p_.graph(), p_.mode, p_.options))
    return;
  p_.storages.unref(p_.view.state(input).storage);
  input_released_ = true;
}

void BackwardPass::end() {
  p_.modules.end_backward();
  const bool redo = p_.mode == TapeMode::redo;
  if (redo && reenters(p_.options) && p_.graph().output() != kNone)
    p_.storages.unref(p_.view.state(p_.graph().output()).storage);
  p_.storages.unref(held_gradient_);
  p_.unread.drop();
  for (const Input& in : p_.graph().inputs()) {
    StorageId gradient = p_.gradients.has(in.value) ? p_.gradients.storage(in.value) : kExternal;
    if (in.kind == InputKind::shared) {
      p_.storages.unref(gradient);  // added to the accumulated gradient
      continue;
    }
    if (gradient != kExternal) gradient = renamed(gradient);
    if (gradient != kExternal) p_.run.input_gradient_slot = p_.storages.of(gradient).slot;
    if (redo && !input_released_ && !recomputation_frees_input(p_.graph(), p_.mode, p_.options))
      p_.storages.unref(p_.view.state(in.value).storage);  // the checkpoint's saved input
    if (redo) lend_input(p_);
  }
}

}  // namespace shardplan::tape
