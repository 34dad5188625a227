// Exchanges among ranks inside a network: what they send, and where their results lie.
#include <algorithm>

#include "program/op_rules.h"
#include "program/tape_state.h"

namespace shardplan {
namespace {

/// DTensor's layouts around a linear: a new tensor in one direction, nothing in the other. The host
/// is busy with them as long as with FSDP2's hooks around a module: wrapping and redistributing
/// forward; backward that, and the dispatch of both products.
bool is_redistribution(const Communication& c) {
  return c.result == ExchangeResult::fresh &&
         (c.forward == Exchange::none) != (c.backward == Exchange::none);
}

}  // namespace

void TapeState::add_exchange(Exchange kind, const Communication& with, std::int64_t bytes,
                             When when) {
  if (kind == Exchange::none || kind == Exchange::slice) return;
  if (options_.module_calls) launch(KernelKind::none, Issue::module, DType::f32, 0, 0);
  flush_kernels();
  events_->push_back({TapeEvent::Kind::exchange, Category::other,
                      static_cast<std::int32_t>(result_.exchanges.size()), bytes});
  result_.exchanges.push_back({kind, with.group, bytes, when == When::ahead});
  if (when == When::waited) wait_for_exchange();
}

void TapeState::wait_for_exchange() {
  flush_kernels();
  events_->push_back({TapeEvent::Kind::wait, Category::other, 0, 0});
}

bool TapeState::chunks_into(const Kernel& product, std::int64_t chunks) const {
  return chunks > 1 && product.m % chunks == 0;
}

/// Index of the last operation that multiplies `value`; kNone where others read it too.
std::int32_t TapeState::last_linear_of(ValueId value) const {
  std::int32_t last = kNone;
  for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
    const Op& op = graph_.ops()[i];
    if (std::find(op.in.begin(), op.in.end(), value) == op.in.end()) continue;
    if (op.kind != OpKind::linear) return kNone;
    last = static_cast<std::int32_t>(i);
  }
  return last;
}

/// The operation after `op`, a linear cut by rows, adds up the ranks' parts of its result.
bool TapeState::is_scattered_next(const Op& op) const {
  const Op* next = &op + 1;
  return next != graph_.ops().data() + graph_.ops().size() && next->kind == OpKind::communicate &&
         next->in[0] == op.out && next->exchange.forward == Exchange::reduce_scatter;
}

/// The gradient of what `op`, a linear cut by columns, reads is added up among ranks.
bool TapeState::waits_for_gradient(const Op& op) const {
  if (!options_.hides_gradient_exchange || op.in[0] == kNone) return false;
  return std::any_of(graph_.ops().begin(), graph_.ops().end(), [&](const Op& maker) {
    return maker.out == op.in[0] && maker.kind == OpKind::communicate &&
           (maker.exchange.backward == Exchange::all_reduce ||
            maker.exchange.backward == Exchange::reduce_scatter);
  });
}

/// Each part of the operand is multiplied once it is here, on streams that take turns, so that the
/// parts fill the GPU together; the last product's last part has to wait for all.
void TapeState::launch_beside_gather(Kernel product, bool last) {
  const std::int64_t chunks = options_.gather_chunks;
  if (!chunks_into(product, chunks)) {
    if (last) wait_for_exchange();
    launch(product);
    return;
  }
  if (!last) {
    launch(product);
    return;
  }
  product.m /= chunks;
  product.batch = chunks - 1;
  launch(product);
  wait_for_exchange();
  product.batch = 1;
  launch(product);
}

/// A part of the result is sent while the next is computed; what is sent last stands where the
/// exchange stands.
void TapeState::launch_beside_scatter(Kernel product, const Op& op) {
  const std::int64_t chunks = options_.scatter_chunks;
  product.m /= chunks;
  launch(product);
  const Op& next = *(&op + 1);
  const std::int64_t bytes = payload_of(next, state(op.out).dtype);
  add_exchange(Exchange::reduce_scatter, next.exchange, bytes - bytes / chunks, When::beside);
  product.batch = chunks - 1;
  launch(product);
}

/// Of all ranks together: the larger of what goes in and what comes out.
std::int64_t TapeState::payload_of(const Op& op, DType type) const {
  if (op.exchange.payload.per > 0) return bytes_of(op.exchange.payload, type);
  return std::max(bytes_of(graph_.value(op.in[0]).extent, type),
                  bytes_of(graph_.value(op.out).extent, type));
}

void TapeState::exchange_forward(const Op& op) {
  const Communication& c = op.exchange;
  const ValueState& in = state(op.in[0]);
  ValueState& out = state(op.out);
  std::int64_t bytes = payload_of(op, in.dtype);
  launch(KernelKind::none, is_redistribution(c) ? Issue::hook : Issue::python, in.dtype, 0, 0);
  if (c.forward == Exchange::none || c.result == ExchangeResult::in_place) {
    add_exchange(c.forward, c, bytes, When::waited);
    out.storage = in.storage;
    out.shared = in.shared;
    out.sliced = in.sliced;
    ref(out.storage);
    return;
  }
  const Extent extent = graph_.value(op.out).extent;
  StorageId staging = kExternal;
  if (c.result == ExchangeResult::staged)
    staging = allocate(bytes_of(extent, in.dtype), category_of(op.out));
  const bool late = c.result != ExchangeResult::staged;
  if (late) out.storage = allocate_result(op, bytes_of(extent, in.dtype));
  if (c.forward == Exchange::all_gather && options_.gather_chunks > 1)
    arriving_ = {op.out, last_linear_of(op.out)};
  if (scattered_) bytes /= options_.scatter_chunks;
  scattered_ = false;
  const bool arrives = arriving_.value == op.out && arriving_.last != kNone;
  add_exchange(c.forward, c, bytes, arrives ? When::beside : When::waited);
  if (late && c.forward != Exchange::slice) return;
  if (!late) out.storage = allocate_result(op, bytes_of(extent, in.dtype));
  const auto moved_bytes = static_cast<double>(bytes_of(extent, in.dtype));
  launch(KernelKind::strided, Issue::nested, in.dtype, 2 * moved_bytes, count_of(op.out));
  unref(staging);
}

void TapeState::exchange_backward(const Op& op, StorageId gradient) {
  const Communication& c = op.exchange;
  const ValueId in = op.in[0];
  const DType type = state(op.out).dtype;
  for (int i = 0; i < (is_redistribution(c) ? 2 : 0); ++i)
    launch(KernelKind::none, Issue::hook, type, 0, 0);
  const bool passes = c.backward == Exchange::none ||
                      (c.result == ExchangeResult::in_place && c.backward == Exchange::all_reduce);
  if (passes) {
    exchange_gradient(op, type);
    ref(gradient);
    give(in, gradient);
    return;
  }
  const StorageId staging = c.result == ExchangeResult::staged && c.backward != Exchange::slice
                                ? gradient_like(in, type)
                                : kExternal;
  const StorageId result = gradient_like(in, type);
  exchange_gradient(op, type);
  if (staging != kExternal || c.backward == Exchange::slice)
    launch(KernelKind::strided, Issue::nested, type, 2 * moved(in, type), count_of(in));
  unref(staging);
  give(in, result);
}

/// Beside the products that were put off for it; a gather beside the products of its own linear.
void TapeState::exchange_gradient(const Op& op, DType type) {
  const Communication& c = op.exchange;
  const bool gathers = c.backward == Exchange::all_gather && options_.gather_chunks > 1;
  const bool made_by_linear =
      gathers && std::any_of(graph_.ops().begin(), graph_.ops().end(), [&](const Op& maker) {
        return maker.out == op.in[0] && maker.kind == OpKind::linear;
      });
  const bool waits = weight_products_.empty() && !made_by_linear;
  add_exchange(c.backward, c, payload_of(op, type), waits ? When::waited : When::beside);
  if (made_by_linear) arriving_ = {op.in[0], kNone};
  if (weight_products_.empty()) return;
  for (const Kernel& product : weight_products_) launch(product);
  weight_products_.clear();
  wait_for_exchange();
}

/// Sequence parallelism saves a linear's input as this rank has it and gathers the rest again, once
/// for all linears of that input: until the first of them, the last in the backward pass, is done.
TapeState::StorageId TapeState::gather_kept(const Op& op, DType type) {
  if (op.kept == kNone) return kExternal;
  if (regathered_.from != op.kept) {
    const Extent whole = graph_.value(op.in[0]).extent;
    regathered_ = {op.kept, temporary(whole, type)};
    Communication with;
    with.group = Group::tensor;
    add_exchange(Exchange::all_gather, with, bytes_of(whole, type),
                 options_.hides_gradient_exchange ? When::ahead : When::waited);
  }
  ref(regathered_.whole);
  const StorageId gathered = regathered_.whole;
  const auto first = std::find_if(graph_.ops().begin(), graph_.ops().end(),
                                  [&](const Op& other) { return other.kept == op.kept; });
  if (first->out == op.out) {
    unref(regathered_.whole);
    regathered_ = {};
  }
  return gathered;
}

/// Keys and values go round while attention over those that are here runs: two buffers beside the
/// rank's own, of `copies` tensors each (the backward pass sends their gradients along).
void TapeState::ring(const Op& op, Exchange kind, std::int64_t copies) {
  const DType type = read_type(op, 0);
  std::int64_t own = 0;
  for (std::size_t k = 1; k < 3; ++k) own += bytes_of(graph_.value(op.in[k]).extent, type);
  const StorageId here = allocate(checked_mul(own, copies), Category::communication_buffers);
  const StorageId coming = allocate(checked_mul(own, copies), Category::communication_buffers);
  add_exchange(kind, op.exchange, checked_mul(own, copies), When::ahead);
  unref(here);
  unref(coming);
}

}  // namespace shardplan
