#include "program/tape/communicate.h"

#include "program/tape/exchange_rules.h"

namespace shardplan::tape {
namespace {

/// The result is the tensor that was given.
void pass_on(Parts& p, const Op& op) {
  const ValueState& in = p.view.state(op.in[0]);
  ValueState& out = p.view.state(op.out);
  out.storage = in.storage;
  out.shared = in.shared;
  out.sliced = in.sliced;
  p.storages.ref(out.storage);
}

Kernel copy_kernel(const GraphView& view, ValueId value, DType type) {
  return memory_kernel(KernelKind::strided, Issue::nested, type, 2 * view.moved(value, type),
                       view.count_of(value));
}

}  // namespace

void communicate_forward(Parts& p, const Op& op) {
  const Communication& c = op.exchange;
  const DType type = p.view.state(op.in[0]).dtype;
  p.writer.launch(call_kernel(is_redistribution(c) ? Issue::hook : Issue::python, type));
  if (c.forward == Exchange::none || c.result == ExchangeResult::in_place) {
    p.writer.exchange(c.forward, c.group, payload_of(p.view, op, type), ExchangeStart::waited);
    pass_on(p, op);
    return;
  }
  const std::int64_t bytes = p.view.bytes_of(op.out, type);
  StorageId& result = p.view.state(op.out).storage;
  if (c.result == ExchangeResult::staged) {
    const StorageId staging = p.storages.allocate(bytes, p.view.category_of(op.out));
    p.exchanges.send_forward(op, type);
    result = p.allocate_result(op, bytes);
    p.writer.launch(copy_kernel(p.view, op.out, type));
    p.storages.unref(staging);
    return;
  }
  result = p.allocate_result(op, bytes);
  p.exchanges.send_forward(op, type);
  if (c.forward == Exchange::slice) p.writer.launch(copy_kernel(p.view, op.out, type));
}

void communicate_backward(Parts& p, const Op& op, StorageId gradient) {
  const Communication& c = op.exchange;
  const ValueId in = op.in[0];
  const DType type = p.view.state(op.out).dtype;
  for (int i = 0; i < (is_redistribution(c) ? 2 : 0); ++i)
    p.writer.launch(call_kernel(Issue::hook, type));
  if (c.backward == Exchange::none ||
      (c.result == ExchangeResult::in_place && c.backward == Exchange::all_reduce)) {
    p.exchanges.send_backward(op, type);
    p.storages.ref(gradient);
    p.gradients.give(in, gradient);
    return;
  }
  const StorageId staging = c.result == ExchangeResult::staged && c.backward != Exchange::slice
                                ? p.gradients.allocate_like(in, type)
                                : kExternal;
  const StorageId result = p.gradients.allocate_like(in, type);
  p.exchanges.send_backward(op, type);
  if (staging != kExternal || c.backward == Exchange::slice)
    p.writer.launch(copy_kernel(p.view, in, type));
  p.storages.unref(staging);
  p.gradients.give(in, result);
}

void ring(Parts& p, const Op& op, std::int64_t copies) {
  const DType type = p.view.read_type(op, 0);
  const std::int64_t own = p.view.bytes_of(op.in[1], type) + p.view.bytes_of(op.in[2], type);
  const std::int64_t bytes = checked_mul(own, copies);
  const StorageId here = p.storages.allocate(bytes, Category::communication_buffers);
  const StorageId coming = p.storages.allocate(bytes, Category::communication_buffers);
  p.writer.exchange(Exchange::ring, op.exchange.group, bytes, ExchangeStart::ahead);
  p.storages.unref(here);
  p.storages.unref(coming);
}

StorageId KeptInput::gather(Parts& p, const Op& linear, DType type) {
  if (linear.kept == kNone) return kExternal;
  if (from_ != linear.kept) {
    const Extent extent = p.view.extent_of(linear.in[0]);
    from_ = linear.kept;
    whole_ = p.temporary(extent, type);
    p.exchanges.gather_kept(p.view.bytes_of(extent, type));
  }
  p.storages.ref(whole_);
  const StorageId gathered = whole_;
  if (first_keeper_of(p.graph(), linear.kept) == &linear) {
    p.storages.unref(whole_);
    *this = {};
  }
  return gathered;
}

}  // namespace shardplan::tape
