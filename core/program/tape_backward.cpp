#include "program/op_rules.h"
#include "program/tape_state.h"

namespace shardplan {

void TapeState::backward() {
  gradients_.resize(values_.size());
  if (graph_.output() != kNone) {
    // The next segment's backward left the gradient of our output; for the loss it is a scalar.
    const auto id = static_cast<StorageId>(storages_.size());
    storages_.push_back({result_.output_bytes, 1, kChainedGradientSlot, Category::activations});
    if (mode_ == TapeMode::redo && reenters()) held_gradient_ = id;
    ref(held_gradient_);
    if (state(graph_.output()).needs_grad) {
      gradients_[static_cast<std::size_t>(graph_.output())] = {id, true};
    } else if (options_.output_gets_grad) {
      unref(id);
    }
  }
  for (std::size_t i = graph_.ops().size(); i-- > 0;) backward_op(i);
  flush_kernels();
  end_backward();
}

TapeState::StorageId TapeState::temporary(Extent extent, DType type) {
  return allocate(bytes_of(extent, type), Category::activations);
}

TapeState::StorageId TapeState::gradient_like(ValueId value, DType type) {
  return allocate(bytes_of(graph_.value(value).extent, type), category_of(value));
}

/// Hands a gradient (one reference of it) to a value. The engine adds in place when nobody else
/// holds the first one, and makes a new tensor otherwise (InputBuffer::accumulate).
void TapeState::give(ValueId value, StorageId gradient) {
  if (!state(value).needs_grad) {
    unref(gradient);
    return;
  }
  Gradient& g = gradients_[static_cast<std::size_t>(value)];
  if (!g.present) {
    g = {gradient, true};
    return;
  }
  launch(KernelKind::elementwise, Issue::nested, state(value).dtype,
         3 * moved(value, state(value).dtype), count_of(value));
  const bool shared =
      g.storage == kExternal || storages_[static_cast<std::size_t>(g.storage)].refs > 1;
  if (shared) {
    const StorageId sum = gradient_like(value, state(value).dtype);
    unref(g.storage);
    g.storage = sum;
  }
  unref(gradient);
}

void TapeState::parameter_gradient(ParameterId id) {
  if (!trains(id)) return;
  const std::int64_t bytes = checked_mul(parameter(id).numel, size_of(parameter_type(id)));
  emit(TapeEvent::Kind::gradient, Category::gradients, id, round_up(bytes, kAllocationUnit));
}

void TapeState::linear_backward(const Op& op) {
  // Without an input value the op reads the batch itself (pixels, audio features).
  const bool input_grad = op.in[0] != kNone && state(op.in[0]).needs_grad;
  const bool autocast = casts(op) && op.kind == OpKind::linear;
  const DType low = autocast ? regime_.compute : parameter_type(op.weight);
  const StorageId gathered = trains(op.weight) ? gather_kept(op, low) : kExternal;
  StorageId dx = kExternal;
  if (input_grad) {
    widen_weight(op);
    dx = gradient_like(op.in[0], low);
  }
  if (op.kept != kNone) wait_for_exchange();
  if (trains(op.weight)) {
    if (low != parameter_type(op.weight)) {
      const StorageId product =
          allocate(checked_mul(parameter(op.weight).numel, size_of(low)), Category::gradients);
      casts_back_.push_back({kNone, op.weight, product});
    } else {
      parameter_gradient(op.weight);
    }
  }
  unref(gathered);
  parameter_gradient(op.bias);
  if (!input_grad) return;
  if (low != state(op.in[0]).dtype) {
    casts_back_.push_back({op.in[0], kNone, dx});
  } else {
    give(op.in[0], dx);
  }
}

bool TapeState::is_tied(ParameterId id) const {
  for (const Segment& segment : model_.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::linear && op.weight == id) return true;
  return false;
}

/// The gradient of a table that is the head's weight too waits for this one in the engine's input
/// buffer. The head's is a view, the transpose of its product, so that the sum cannot reuse it and
/// is a third tensor (input_buffer.cpp, can_accumulate_inplace); under autocast a cast made a new
/// one of it.
void TapeState::embedding_backward(const Op& op) {
  const bool third = trains(op.weight) && !regime_.autocast() && is_tied(op.weight);
  StorageId sum = kExternal;
  if (third)
    sum = allocate(checked_mul(parameter(op.weight).numel, size_of(parameter_type(op.weight))),
                   Category::gradients);
  parameter_gradient(op.weight);
  unref(sum);
}

/// FlashAttention's backward (flash_attn/flash_api.cpp): dq, dk, dv; an fp32 accumulator of dq
/// with the length rounded up to 128 and the head to 32; one fp32 row sum; and dk, dv of all
/// query heads when they share keys.
void TapeState::sdpa_backward(const Op& op) {
  const DType low = read_type(op, 0);
  if (runs_as_math(op, low)) {
    math_attention_backward(op);
    return;
  }
  const bool rings = op.exchange.backward == Exchange::ring;
  if (rings) {
    ring(op, Exchange::ring, 2);
    wait_for_exchange();
  }
  const std::int64_t heads = op.side.per;
  const std::int64_t head_dim = graph_.value(op.in[0]).extent.per / heads;
  const StorageId accumulator =
      temporary({heads * round_up(head_dim, 32), op.side.scale}, DType::f32);
  const StorageId row_sum = temporary(op.side, DType::f32);
  std::array<StorageId, 3> grads{};
  for (std::size_t k = 0; k < 3; ++k) grads[k] = gradient_like(op.in[k], low);
  const Extent keys = graph_.value(op.in[1]).extent;
  if (keys.per < heads * head_dim) {
    const StorageId dk = temporary({heads * head_dim, keys.scale}, low);
    const StorageId dv = temporary({heads * head_dim, keys.scale}, low);
    unref(dk);
    unref(dv);
  }
  unref(accumulator);
  unref(row_sum);
  // The kernel writes a mask's gradient for the whole batch; it is summed to the mask's own size.
  if (op.scores_bias != kNone && state(op.scores_bias).needs_grad) {
    const StorageId batch = temporary({heads, op.work.scale}, low);
    const StorageId sum = gradient_like(op.scores_bias, state(op.scores_bias).dtype);
    unref(batch);
    give(op.scores_bias, sum);
  }
  for (std::size_t k = 0; k < 3; ++k) give_from(op, k, grads[k]);
}

/// Hands the gradient of what the op read to input k, through the cast's backward if there was one.
void TapeState::give_from(const Op& op, std::size_t k, StorageId gradient) {
  const ValueId in = op.in[k];
  if (state(in).needs_grad && read_type(op, k) != state(in).dtype) {
    casts_back_.push_back({in, kNone, gradient});
  } else {
    give(in, gradient);
  }
}

void TapeState::cast_back() {
  for (const CastBack& cast : casts_back_) {
    if (cast.weight != kNone) {
      launch_cast({parameter(cast.weight).numel, Scale::one}, regime_.compute,
                  parameter_type(cast.weight), Issue::autograd);
      parameter_gradient(cast.weight);
      unref(cast.gradient);
      continue;
    }
    const StorageId gradient = gradient_like(cast.value, state(cast.value).dtype);
    launch_cast(graph_.value(cast.value).extent, regime_.compute, state(cast.value).dtype,
                Issue::autograd);
    unref(cast.gradient);
    give(cast.value, gradient);
  }
  casts_back_.clear();
}

/// A node that has run lets go of what it saved and of its incoming gradient.
void TapeState::let_go(std::size_t i) {
  Node& node = nodes_[i];
  for (std::int32_t k = 0; k < node.saved_count; ++k)
    unref(node.saved[static_cast<std::size_t>(k)]);
  node.saved_count = 0;
  Gradient& out = gradients_[static_cast<std::size_t>(graph_.ops()[i].out)];
  if (!out.present) return;
  unref(out.storage);
  out.present = false;
}

/// Everything that maps gradients element by element. `g` is the incoming gradient.
void TapeState::elementwise_backward(const Op& op, StorageId g) {
  const DType out = state(op.out).dtype;
  for (std::size_t k = 0; k < op.in.size() && op.in[k] != kNone; ++k) {
    if (op.kind == OpKind::to_like && k == 1) break;
    const ValueId in = op.in[k];
    if (!state(in).needs_grad) continue;
    const bool same = state(in).dtype == out && elements(graph_.value(in).extent, sizes_) ==
                                                    elements(graph_.value(op.out).extent, sizes_);
    const bool passes = op.kind == OpKind::add || op.kind == OpKind::copy ||
                        op.kind == OpKind::fold_heads || op.kind == OpKind::view ||
                        op.kind == OpKind::cat || is_cast(op.kind);
    if (passes && (same || op.kind == OpKind::cat)) {
      ref(g);
      give(in, g);
      continue;
    }
    // Slices of one tensor gather their gradients in one buffer; the first makes it.
    const Gradient& have = gradients_[static_cast<std::size_t>(in)];
    if (op.kind == OpKind::view && have.present) {
      launch(KernelKind::elementwise, Issue::nested, out, 3 * moved(in, out), count_of(in));
      continue;
    }
    if (op.kind == OpKind::power) {  // grad·(2·x): the two factors are temporaries
      const StorageId factor = gradient_like(in, out);
      const StorageId product = gradient_like(in, out);
      unref(factor);
      give_from(op, k, product);
      continue;
    }
    if (op.kind == OpKind::mul && out != state(in).dtype) {
      const StorageId product = gradient_like(op.out, out);
      const StorageId narrow = gradient_like(in, state(in).dtype);
      unref(product);
      give(in, narrow);
      continue;
    }
    give_from(op, k, gradient_like(in, read_type(op, k)));
  }
  if (op.kind != OpKind::cat) return;
  for (const Hold& join : graph_.joins()) {
    if (join.until != op.out || !state(join.value).needs_grad) continue;
    ref(g);
    give(join.value, g);
  }
}

void TapeState::backward_op(std::size_t i) {
  const Op& op = graph_.ops()[i];
  const Gradient& out = gradients_[static_cast<std::size_t>(op.out)];
  Node& node = nodes_[i];
  const bool runs = node.active && out.present;
  if (runs) {
    const StorageId g = out.storage;
    if (op.module != kNone)
      emit(TapeEvent::Kind::fetch, Category::gathered_parameters, op.module, 0);
    launch_backward(op, op.in[0] != kNone ? read_type(op, 0) : state(op.out).dtype);
    switch (op.kind) {
      case OpKind::linear:
        linear_backward(op);
        break;
      case OpKind::grouped_linear:
        if (op.in[1] != kNone) {  // biases were added in place: the gradient is theirs too
          ref(g);
          give(op.in[1], g);
        }
        linear_backward(op);
        break;
      case OpKind::sdpa:
        sdpa_backward(op);
        break;
      case OpKind::communicate:
        exchange_backward(op, g);
        break;
      case OpKind::fused_linear_loss:
        fused_loss_backward(op, nodes_[i]);
        break;
      case OpKind::embedding:
        embedding_backward(op);
        break;
      case OpKind::softmax:
      case OpKind::softmax_f32: {
        // The kernel writes grad·output beside its result (aten/.../cuda/SoftMax.cu).
        const StorageId product = gradient_like(op.out, state(op.out).dtype);
        elementwise_backward(op, g);
        unref(product);
        break;
      }
      case OpKind::parameter:
        parameter_gradient(op.weight);
        break;
      case OpKind::vocabulary_loss:
        vocabulary_loss_backward(op, node);
        break;
      case OpKind::layer_norm:
      case OpKind::rms_norm:
        elementwise_backward(op, g);
        parameter_gradient(op.weight);
        parameter_gradient(op.bias);
        break;
      default:
        elementwise_backward(op, g);
    }
  }
  let_go(i);
  cast_back();
  if (runs && op.module != kNone)
    emit(TapeEvent::Kind::release, Category::gathered_parameters, op.module, 0);
}

void TapeState::end_backward() {
  if (mode_ == TapeMode::redo && reenters() && graph_.output() != kNone)
    unref(state(graph_.output()).storage);
  unref(held_gradient_);
  for (const Input& in : graph_.inputs()) {
    const Gradient& g = gradients_[static_cast<std::size_t>(in.value)];
    if (in.kind == InputKind::shared) {
      if (g.present) unref(g.storage);  // added to the accumulated gradient
      continue;
    }
    if (g.present && g.storage != kExternal)
      result_.input_gradient_slot = storages_[static_cast<std::size_t>(g.storage)].slot;
    if (mode_ == TapeMode::redo) unref(state(in.value).storage);  // the checkpoint's saved input
  }
}

}  // namespace shardplan
