#include <algorithm>
#include <bit>

#include "program/op_rules.h"
#include "program/tape_state.h"

namespace shardplan {

TapeRun run_tape(const Model& model, const Segment& segment, const Regime& regime,
                 const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options) {
  return TapeState(model, segment, regime, sizes, input, mode, options).run();
}

TapeState::TapeState(const Model& model, const Segment& segment, const Regime& regime,
                     const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options)
    : model_(model),
      graph_(segment.graph),
      regime_(regime),
      sizes_(sizes),
      mode_(mode),
      options_(options),
      keep_(mode == TapeMode::keep || mode == TapeMode::redo),
      values_(graph_.values().size()),
      nodes_(graph_.ops().size()) {
  for (const Input& in : graph_.inputs()) {
    ValueState& v = state(in.value);
    if (in.kind == InputKind::chained) {
      v.dtype = input;
      v.needs_grad = options.input_needs_grad;
    } else {
      const Shared& shared = model.shared[static_cast<std::size_t>(in.shared)];
      v.dtype = shared.f32 ? DType::f32 : regime.params;
      v.needs_grad = shared.needs_grad;
      v.shared = in.shared;
    }
  }
  const std::size_t expected = graph_.ops().size() * 3;
  storages_.reserve(expected);
  result_.forward.reserve(expected);
  if (keep_) result_.backward.reserve(2 * expected);
}

TapeRun TapeState::run() {
  const bool redo = mode_ == TapeMode::redo;
  events_ = redo ? &result_.backward : &result_.forward;
  kernels_ = redo ? &result_.backward_kernels : &result_.forward_kernels;
  if (options_.selective)
    for (const Op& op : graph_.ops())
      if (is_product(op.kind)) kept_slots_ += 2;  // attention returns its row sums too
  if (replaces_input()) kept_slots_ += 2;         // a part of the input, and an empty tensor
  prepare_inputs();
  if (mode_ == TapeMode::discard) save_part();
  if (redo) restore_input();
  order_releases();
  forward();
  if (keep_) {
    in_backward_ = true;
    events_ = &result_.backward;
    if (!redo) flushed_ = 0;
    kernels_ = &result_.backward_kernels;
    backward();
  }
  result_.slots = kept_slots_ + static_cast<std::int32_t>(storages_.size());
  return std::move(result_);
}

TapeState::StorageId TapeState::allocate(std::int64_t bytes, Category category) {
  const auto id = static_cast<StorageId>(storages_.size());
  storages_.push_back({round_up(bytes, kAllocationUnit), 1, id + kept_slots_, category, false});
  const Storage& s = storages_.back();
  emit(TapeEvent::Kind::alloc, category, s.slot, s.bytes);
  return id;
}

/// The storage of what `op` returns. Selective checkpointing keeps that of products: the forward
/// pass leaves it behind, and the recomputation, which makes more tensors than the forward pass,
/// takes it over under the same slot.
TapeState::StorageId TapeState::allocate_result(const Op& op, std::int64_t bytes) {
  const Category category = category_of(op.out);
  if (!options_.selective || !is_product(op.kind)) return allocate(bytes, category);
  return allocate_kept(bytes, category);
}

TapeState::StorageId TapeState::allocate_kept(std::int64_t bytes, Category category) {
  const auto id = static_cast<StorageId>(storages_.size());
  storages_.push_back({round_up(bytes, kAllocationUnit), 1, kept_results_++, category, false});
  const Storage& s = storages_.back();
  if (mode_ != TapeMode::redo) emit(TapeEvent::Kind::alloc, category, s.slot, s.bytes);
  if (mode_ == TapeMode::discard) ref(id);
  return id;
}

void TapeState::ref(StorageId id) {
  if (id != kExternal) ++storages_[static_cast<std::size_t>(id)].refs;
}

void TapeState::unref(StorageId id) {
  if (id == kExternal) return;
  Storage& s = storages_[static_cast<std::size_t>(id)];
  if (--s.refs == 0 && !s.exported) emit(TapeEvent::Kind::free, s.category, s.slot, s.bytes);
}

void TapeState::emit(TapeEvent::Kind kind, Category category, std::int32_t id, std::int64_t bytes) {
  if (kind == TapeEvent::Kind::fetch || kind == TapeEvent::Kind::gradient) flush_kernels();
  events_->push_back({kind, category, id, bytes});
}

std::int64_t TapeState::bytes_of(Extent extent, DType type) const {
  return checked_mul(elements(extent, sizes_), size_of(type));
}

Category TapeState::category_of(ValueId id) const {
  return graph_.value(id).logits ? Category::logits_and_loss : Category::activations;
}

bool TapeState::trains(ParameterId id) const {
  return id != kNone && parameter(id).trainable;
}

DType TapeState::parameter_type(ParameterId id) const {
  const Parameter& p = parameter(id);
  if (p.quantized) return regime_.compute;  // widened to it for each use
  return p.adapter ? regime_.adapters : regime_.params;
}

/// The caller's frame holds the chained input until the segment returns.
void TapeState::prepare_inputs() {
  for (const Input& in : graph_.inputs()) {
    if (in.kind != InputKind::chained) continue;
    const auto id = static_cast<StorageId>(storages_.size());
    const std::int64_t bytes =
        round_up(bytes_of(graph_.value(in.value).extent, state(in.value).dtype), kAllocationUnit);
    storages_.push_back({bytes, 1, kChainedInputSlot, Category::activations, false});
    state(in.value).storage = id;
  }
}

/// A value's name dies after its last use, or when a hold on it ends.
void TapeState::order_releases() {
  const auto& ops = graph_.ops();
  std::vector<std::int32_t> last(values_.size(), -1);
  std::vector<std::int32_t> made(values_.size(), -1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    made[static_cast<std::size_t>(ops[i].out)] = static_cast<std::int32_t>(i);
    for (const ValueId in : ops[i].in)
      if (in != kNone) last[static_cast<std::size_t>(in)] = static_cast<std::int32_t>(i);
    for (const ValueId read : {ops[i].scores_bias, ops[i].kept})
      if (read != kNone) last[static_cast<std::size_t>(read)] = static_cast<std::int32_t>(i);
  }
  for (const Hold& hold : graph_.holds()) {
    auto& at = last[static_cast<std::size_t>(hold.value)];
    at = std::max(at, made[static_cast<std::size_t>(hold.until)]);
  }
  for (const ValueId value : graph_.named())
    last[static_cast<std::size_t>(value)] = static_cast<std::int32_t>(ops.size()) - 1;
  if (graph_.lets_input_go() && (mode_ == TapeMode::keep || mode_ == TapeMode::infer))
    for (const Input& in : graph_.inputs()) {
      const auto v = static_cast<std::size_t>(in.value);
      if (in.kind == InputKind::chained) releases_.emplace_back(std::max(last[v], 0), in.value);
    }
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (made[v] < 0 || static_cast<ValueId>(v) == graph_.output()) continue;  // inputs, the output
    if (is_named_in_model(static_cast<ValueId>(v))) continue;
    releases_.emplace_back(std::max(last[v], made[v]), static_cast<ValueId>(v));
  }
  std::sort(releases_.begin(), releases_.end());
}

bool TapeState::op_needs_grad(const Op& op) const {
  if (trains(op.weight) || trains(op.bias)) return true;
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId in) { return in != kNone && state(in).needs_grad; });
}

DType TapeState::result_type(const Op& op) const {
  const bool autocast = casts(op);
  const auto in = [&](std::size_t k) { return state(op.in[k]).dtype; };
  switch (op.kind) {
    case OpKind::to_f32:
    case OpKind::softmax_f32:
      return DType::f32;
    case OpKind::to_adapter:
      return regime_.adapters;
    case OpKind::to_like:
      return in(1);
    case OpKind::embedding:
    case OpKind::parameter:
    case OpKind::grouped_linear:
      return parameter_type(op.weight);
    case OpKind::fused_linear_loss:
    case OpKind::vocabulary_loss:
      return DType::f32;
    case OpKind::compare:
      return DType::b1;
    case OpKind::linear:
      return autocast ? regime_.compute : parameter_type(op.weight);
    case OpKind::matmul:
    case OpKind::sdpa:
      return autocast ? regime_.compute : in(0);
    default:
      break;
  }
  if (autocast && autocast_rule(op.kind) == AutocastRule::full) return DType::f32;
  return op.in[1] == kNone ? in(0) : promote(in(0), in(1));
}

/// The type in which an op reads input k: after autocast, or after a cast of its own.
DType TapeState::read_type(const Op& op, std::size_t k) const {
  const DType type = state(op.in[k]).dtype;
  if (op.kind == OpKind::grouped_linear) return parameter_type(op.weight);
  // ATen's softmax with dtype=float32 fuses the conversion of fp16 only.
  if (op.kind == OpKind::softmax_f32) return type == DType::bf16 ? DType::f32 : type;
  if (!casts(op)) return type;
  switch (autocast_rule(op.kind)) {
    case AutocastRule::low:
      return regime_.compute;
    case AutocastRule::full:
      return DType::f32;
    case AutocastRule::widest:
      break;
  }
  return type;
}

/// The storage an input is read from; `type` becomes its dtype. The caller owns one reference to
/// the result.
TapeState::StorageId TapeState::cast_input(const Op& op, std::size_t k, DType& type) {
  const ValueState& v = state(op.in[k]);
  type = read_type(op, k);
  if (type == v.dtype) {
    ref(v.storage);
    return v.storage;
  }
  launch_cast(graph_.value(op.in[k]).extent, v.dtype, type, Issue::nested);
  return allocate(bytes_of(graph_.value(op.in[k]).extent, type), category_of(op.in[k]));
}

bool TapeState::is_masked(const Op& op) const {
  const bool cached = op.work.scale == Scale::context_scores;
  return op.mask.per > 0 && (cached ? sizes_.context : sizes_.sequence) >= op.mask_from;
}

/// Grouped keys and values go to the fused kernel as they are only where there is no mask
/// (transformers/integrations/sdpa_attention.py, use_gqa_in_sdpa).
void TapeState::repeat_heads(const Op& op, std::array<StorageId, 3>& read, DType type) {
  const std::int64_t width = graph_.value(op.in[0]).extent.per;
  const Extent keys = graph_.value(op.in[1]).extent;
  if (keys.per >= width) return;
  for (std::size_t k = 1; k < read.size(); ++k) {
    const Extent grouped = graph_.value(op.in[k]).extent;
    const StorageId all = allocate(
        bytes_of({grouped.per * (width / keys.per), grouped.scale}, type), category_of(op.out));
    const auto bytes = static_cast<double>(storages_[static_cast<std::size_t>(all)].bytes);
    launch(KernelKind::strided, Issue::python, type, 2 * bytes,
           bytes / static_cast<double>(size_of(type)));
    unref(read[k]);
    read[k] = all;
  }
}

/// Autocast reads a copy of each fp32 weight; copies of leaf parameters are cached until the
/// outermost autocast ends, and the node keeps one while its input needs a gradient.
void TapeState::cast_weight(const Op& op, Node& node, bool input_needs_grad) {
  const Parameter& w = parameter(op.weight);
  if (!regime_.autocast() || w.quantized) return;
  if (regime_.zero3_linear) {
    launch_weight_cast(w, parameter_type(op.weight), regime_.compute);
    unref(allocate(checked_mul(w.numel, size_of(regime_.compute)), Category::other));
    return;
  }
  const auto known = std::find_if(weight_casts_.begin(), weight_casts_.end(),
                                  [&](const auto& c) { return c.first == op.weight; });
  StorageId copy = kExternal;
  if (known != weight_casts_.end()) {
    copy = known->second;
  } else {
    copy = allocate(checked_mul(w.numel, size_of(regime_.compute)), Category::other);
    launch_weight_cast(w, parameter_type(op.weight), regime_.compute);
    if (w.trainable) weight_casts_.emplace_back(op.weight, copy);
  }
  if (keep_ && input_needs_grad) save(node, copy);
  if (!w.trainable) unref(copy);
}

void TapeState::save(Node& node, StorageId id) {
  if (id == kExternal) return;
  ref(id);
  node.saved[static_cast<std::size_t>(node.saved_count++)] = id;
}

/// A shared tensor is alive in the backward pass only if autograd keeps it.
void TapeState::note_saved(ValueId value, StorageId id) {
  const std::int32_t shared = state(value).shared;
  if (id == kExternal && shared != kNone) result_.saved_shared.push_back(shared);
}

/// Autocast gives sdpa its mask in the compute type too.
void TapeState::save_scores_bias(const Op& op, Node& node) {
  const ValueState& mask = state(op.scores_bias);
  if (!regime_.autocast() || mask.dtype == regime_.compute) {
    save(node, mask.storage);
    note_saved(op.scores_bias, mask.storage);
    return;
  }
  const StorageId copy = allocate(bytes_of(graph_.value(op.scores_bias).extent, regime_.compute),
                                  category_of(op.scores_bias));
  save(node, copy);
  unref(copy);
}

void TapeState::forward() {
  for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
    first_kernels_.push_back(kernels_->size());
    first_exchanges_.push_back(result_.exchanges.size());
    forward_op(i);
    release_names(i);
  }
  flush_kernels();
  end_forward();
}

void TapeState::forward_op(std::size_t i) {
  const Op& op = graph_.ops()[i];
  Node& node = nodes_[i];
  node.active = op_needs_grad(op);
  ValueState& out = state(op.out);
  out.needs_grad = node.active;
  out.dtype = result_type(op);
  if (op.module != kNone) emit(TapeEvent::Kind::fetch, Category::gathered_parameters, op.module, 0);

  const bool evaluates = mode_ == TapeMode::infer && op.kind == OpKind::dropout;
  const bool no_op_cast = is_cast(op.kind) && out.dtype == state(op.in[0]).dtype;
  if (is_alias(op.kind, sizes_) || no_op_cast || evaluates) {
    out.storage = state(op.in[0]).storage;
    out.shared = state(op.in[0]).shared;
    ref(out.storage);
    out.sliced = state(op.in[0]).sliced || count_of(op.out) < count_of(op.in[0]);
    launch(KernelKind::none, Issue::python, out.dtype, 0, 0);
    return;
  }
  if (op.kind == OpKind::communicate) {
    exchange_forward(op);
    return;
  }
  if (op.kind == OpKind::parameter) {
    emit(TapeEvent::Kind::release, Category::gathered_parameters, op.module, 0);
    return;
  }

  std::array<StorageId, 3> read{kExternal, kExternal, kExternal};
  std::array<DType, 3> type{};
  std::size_t inputs = 0;
  // The reference tensor of to_like lends only its dtype.
  const std::size_t most = op.kind == OpKind::to_like ? 1 : op.in.size();
  for (; inputs < most && op.in[inputs] != kNone; ++inputs)
    read[inputs] = cast_input(op, inputs, type[inputs]);
  const bool input_needs_grad = inputs > 0 && state(op.in[0]).needs_grad;
  if (op.kind == OpKind::linear) cast_weight(op, node, input_needs_grad);
  if (is_masked(op)) repeat_heads(op, read, type[0]);
  const bool as_math = op.kind == OpKind::sdpa && runs_as_math(op, type[0]);
  if (as_math) math_attention_forward(op, node);

  widen_weight(op);
  if (op.kind == OpKind::fused_linear_loss) fused_loss_forward(op, node);
  if (op.kind == OpKind::cache) {
    append_to_cache(op);
    for (std::size_t k = 0; k < inputs; ++k) unref(read[k]);
    launch_forward(op, type[0]);
    return;
  }
  out.storage = allocate_result(op, bytes_of(graph_.value(op.out).extent, out.dtype));
  const bool attends = op.kind == OpKind::sdpa && !as_math;
  if (options_.selective && attends &&
      mode_ == TapeMode::discard)  // the log-sum-exp is returned too
    allocate_result(op, checked_mul(elements(op.side, sizes_), 4));

  if (node.active && keep_) {
    const SaveRule rule = as_math ? SaveRule{} : save_rule(op.kind);
    for (std::size_t k = 0; k < inputs; ++k) {
      const bool other_needs =
          k == 0 ? (inputs > 1 && state(op.in[1]).needs_grad) : state(op.in[0]).needs_grad;
      if (!rule.inputs && !(rule.crossed && other_needs)) continue;
      save(node, read[k]);
      note_saved(op.in[k], read[k]);
    }
    if (rule.output) save(node, out.storage);
    const bool product = op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
    if (op.kind == OpKind::linear && regime_.zero3_linear) {
      const StorageId input = inputs > 0 ? state(op.in[0]).storage : kExternal;
      save(node, input);
      if (inputs > 0) note_saved(op.in[0], input);
    } else if (product && trains(op.weight)) {
      const StorageId input = op.kept == kNone ? read[0] : state(op.kept).storage;
      save(node, input);
      if (inputs > 0) note_saved(op.in[0], input);
    }
    if (op.scores_bias != kNone) save_scores_bias(op, node);
    const auto keep_side = [&](std::int64_t bytes) {
      const StorageId side = allocate(bytes, category_of(op.out));
      save(node, side);
      unref(side);
    };
    const std::int64_t side = elements(op.side, sizes_);
    if (op.kind == OpKind::layer_norm || op.kind == OpKind::rms_norm) {
      keep_side(checked_mul(side, 4));
      if (op.kind == OpKind::layer_norm) keep_side(checked_mul(side, 4));
    } else if (op.kind == OpKind::vocabulary_loss) {
      if (side > 0)
        keep_side(checked_mul(side, 4));
      else
        keep_side(bytes_of(graph_.value(op.in[0]).extent, type[0]));
    } else if (attends && op.again) {
      if (op.joined)
        keep_side(bytes_of(graph_.value(op.in[0]).extent, type[0]) +
                  bytes_of(graph_.value(op.in[1]).extent, type[1]));
    } else if (attends) {
      const StorageId row_sums = allocate_result(op, checked_mul(side, 4));
      save(node, row_sums);
      unref(row_sums);
      if (is_masked(op)) keep_side(bytes_of(op.mask, type[0]));
    } else if (op.kind == OpKind::embedding || op.kind == OpKind::gather_rows ||
               op.kind == OpKind::scatter_rows || op.kind == OpKind::nll_loss) {
      if (side > 0) keep_side(checked_mul(side, 8));
    } else if (op.kind == OpKind::dropout) {
      keep_side(elements(graph_.value(op.out).extent, sizes_));
    }
  }
  const bool rings = attends && op.exchange.forward == Exchange::ring;
  if (rings) ring(op, Exchange::ring, 1);
  if (mode_ == TapeMode::infer) pass_side(op, attends, inputs > 0 ? type[0] : out.dtype);
  for (std::size_t k = 0; k < inputs; ++k) unref(read[k]);
  launch_forward(op, inputs > 0 ? type[0] : out.dtype);
  if (rings) wait_for_exchange();
  if (op.module != kNone)
    emit(TapeEvent::Kind::release, Category::gathered_parameters, op.module, 0);
}

void TapeState::release_names(std::size_t i) {
  while (next_release_ < releases_.size() &&
         releases_[next_release_].first == static_cast<std::int32_t>(i))
    unref(state(releases_[next_release_++].second).storage);
}

/// A checkpoint's recomputation stops when the last tensor has been saved: what an operation saves
/// of its inputs is saved before it runs (torch/utils/checkpoint.py, early stop).
void TapeState::stop_recomputation() {
  std::size_t last = nodes_.size();
  while (last > 0 && nodes_[last - 1].saved_count == 0) --last;
  if (last == 0) return;
  const SaveRule rule = save_rule(graph_.ops()[last - 1].kind);
  const std::size_t end = rule.output ? last : last - 1;
  if (end >= first_kernels_.size()) return;
  for (std::size_t k = first_kernels_[end]; k < kernels_->size(); ++k) (*kernels_)[k].calls = 0;
  for (std::size_t k = first_exchanges_[end]; k < result_.exchanges.size(); ++k)
    result_.exchanges[k].bytes = 0;
}

void TapeState::end_forward() {
  if (mode_ == TapeMode::redo && !reenters()) stop_recomputation();
  if (graph_.output() != kNone) {
    const ValueState& out = state(graph_.output());
    result_.output_dtype = out.dtype;
    result_.output_needs_grad = out.needs_grad;
    if (out.storage != kExternal) {
      Storage& s = storages_[static_cast<std::size_t>(out.storage)];
      result_.output_bytes = s.bytes;
      if (mode_ == TapeMode::redo) {
        if (!reenters()) unref(out.storage);  // the recomputed output is not needed
      } else {
        s.exported = true;
        result_.output_slot = s.slot;
      }
    }
  }
  for (const auto& [weight, copy] : weight_casts_) {
    Storage& s = storages_[static_cast<std::size_t>(copy)];
    if (mode_ == TapeMode::redo) {
      unref(copy);
    } else if (s.refs == 1) {  // nothing but the cache holds it: it goes when autocast ends
      result_.autocast_cache.push_back({TapeEvent::Kind::free, s.category, s.slot, s.bytes});
    } else {
      --s.refs;
    }
  }
  if (mode_ == TapeMode::discard) replace_input();
  // A checkpointed segment keeps its input for the recomputation; backward lets it go.
  if (mode_ == TapeMode::infer) keep_names_of_model();
  if ((mode_ == TapeMode::keep || mode_ == TapeMode::infer) && !graph_.lets_input_go())
    for (const Input& in : graph_.inputs())
      if (in.kind == InputKind::chained) unref(state(in.value).storage);
}

}  // namespace shardplan
