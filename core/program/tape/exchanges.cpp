#include "program/tape/exchanges.h"

#include "program/tape/exchange_rules.h"

namespace shardplan::tape {
namespace {

bool divides_into(const Kernel& product, std::int64_t chunks) {
  return chunks > 1 && product.m % chunks == 0;
}

}  // namespace

void Exchanges::launch_forward(const Op& linear, const Kernel& product) {
  const Graph& graph = view_.graph();
  if (arriving_.last != kNone && arriving_.value == linear.in[0]) {
    launch_beside_gather(product,
                         &graph.ops()[static_cast<std::size_t>(arriving_.last)] == &linear);
  } else if (divides_into(product, options_.scatter_chunks) && is_scattered_next(graph, linear)) {
    launch_beside_scatter(product, linear);
    scattered_ = true;
  } else {
    writer_.launch(product);
  }
}

/// Each part of the operand is multiplied once it is here, on streams that take turns, so that the
/// parts fill the GPU together; the last product's last part has to wait for all.
void Exchanges::launch_beside_gather(Kernel product, bool last) {
  const std::int64_t chunks = options_.gather_chunks;
  if (!divides_into(product, chunks)) {
    if (last) writer_.wait();
    writer_.launch(product);
    return;
  }
  if (!last) {
    writer_.launch(product);
    return;
  }
  product.m /= chunks;
  product.batch = chunks - 1;
  writer_.launch(product);
  writer_.wait();
  product.batch = 1;
  writer_.launch(product);
}

/// A part of the result is sent while the next is computed; what is sent last stands where the
/// exchange stands.
void Exchanges::launch_beside_scatter(Kernel product, const Op& op) {
  const std::int64_t chunks = options_.scatter_chunks;
  product.m /= chunks;
  writer_.launch(product);
  const Op& next = *(&op + 1);
  const std::int64_t bytes = payload_of(view_, next, view_.state(op.out).dtype);
  writer_.exchange(Exchange::reduce_scatter, next.exchange.group, bytes - bytes / chunks,
                   ExchangeStart::beside);
  product.batch = chunks - 1;
  writer_.launch(product);
}

void Exchanges::send_forward(const Op& op, DType type) {
  const Communication& c = op.exchange;
  if (c.forward == Exchange::all_gather && options_.gather_chunks > 1)
    arriving_ = {op.out, last_linear_of(view_.graph(), op.out)};
  std::int64_t bytes = payload_of(view_, op, type);
  if (scattered_) bytes /= options_.scatter_chunks;
  scattered_ = false;
  const bool arrives = arriving_.value == op.out && arriving_.last != kNone;
  writer_.exchange(c.forward, c.group, bytes,
                   arrives ? ExchangeStart::beside : ExchangeStart::waited);
}

void Exchanges::launch_backward(const Op& linear, const LinearBackwardKernels& kernels) {
  const bool arrives = arriving_.value == linear.out;
  if (arrives && !kernels.input) writer_.wait();
  if (kernels.input && arrives) launch_beside_gather(*kernels.input, true);
  if (kernels.input && !arrives) writer_.launch(*kernels.input);
  if (arrives) arriving_ = {};
  if (kernels.weight) {
    const bool later = kernels.input && options_.hides_gradient_exchange &&
                       is_gradient_reduced(view_.graph(), linear);
    if (later)
      weight_products_.push_back(*kernels.weight);
    else
      writer_.launch(*kernels.weight);
  }
  if (kernels.bias) writer_.launch(*kernels.bias);
}

void Exchanges::send_backward(const Op& op, DType type) {
  const Communication& c = op.exchange;
  const bool gathers = c.backward == Exchange::all_gather && options_.gather_chunks > 1;
  const Op* maker = gathers ? maker_of(view_.graph(), op.in[0]) : nullptr;
  const bool made_by_linear = maker != nullptr && maker->kind == OpKind::linear;
  const bool waits = weight_products_.empty() && !made_by_linear;
  writer_.exchange(c.backward, c.group, payload_of(view_, op, type),
                   waits ? ExchangeStart::waited : ExchangeStart::beside);
  if (made_by_linear) arriving_ = {op.in[0], kNone};
  if (weight_products_.empty()) return;
  for (const Kernel& product : weight_products_) writer_.launch(product);
  weight_products_.clear();
  writer_.wait();
}

void Exchanges::gather_kept(std::int64_t bytes) {
  writer_.exchange(Exchange::all_gather, Group::tensor, bytes,
                   options_.hides_gradient_exchange ? ExchangeStart::ahead : ExchangeStart::waited);
}

}  // namespace shardplan::tape
