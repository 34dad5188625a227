#include "engine/mlp/routing.h"

namespace shardplan::validator {

Routing::Routing(Runtime& runtime, const DecoderSpec& spec, const ExpertSlots& slots, DType dtype,
                 bool drops)
    : experts_(*spec.experts),
      slots_(slots),
      layers_(spec.layers),
      hidden_(spec.hidden),
      tensor_(runtime.tensor.size()),
      context_(runtime.context.size()),
      dtype_(dtype),
      ranks_(runtime),
      counted_(runtime.device.new_event()) {
  const auto numbers = [&](const char* name, Shape shape) {
    return runtime.arena.allocate(name, Category::other, statistic_type(dtype), shape);
  };
  // Of every such network, so that its memory does not depend on a coefficient.
  const Tensor balance = numbers("balance", {2, experts_.count});
  if (experts_.balance > 0) tally_.balance = balance;
  if (drops) tally_.dropped = numbers("dropped", {1});
  tally_.idle = &idle_;
}

void Routing::begin_step(Runtime& runtime) {
  idle_ = {};
  if (!tally_.dropped.empty()) runtime.device.zero(tally_.dropped);
  if (!ranks_.divided()) return;
  ranks_.lend(runtime.arena.allocate("exchanged.experts", Category::communication_buffers, dtype_,
                                     {slots_.all(experts_), hidden_}));
}

float Routing::balance_scale() const {
  const auto layers = static_cast<float>(layers_);
  const auto tokens = static_cast<float>(slots_.rows * tensor_ * context_);
  return experts_.balance * static_cast<float>(experts_.count) / (layers * layers * tokens);
}

void Routing::begin_micro_batch(Backend& device, const MicroBatch& micro) {
  if (tally_.balance.empty()) return;
  device.zero(tally_.balance);
  tally_.slope = micro.gradient_scale * balance_scale();
}

void Routing::end_micro_batch(Runtime& runtime, const Tensor& loss) {
  if (tally_.balance.empty()) return;
  if (tensor_ > 1)
    in_line(runtime.device, counted_, [&] { runtime.tensor.all_reduce(tally_.balance); });
  if (context_ > 1)
    in_line(runtime.device, counted_, [&] { runtime.context.all_reduce(tally_.balance); });
  // Ranks that share sequences add to the sum of losses, of which those that share layers have one
  // each.
  runtime.device.balance_loss(loss, tally_.balance, balance_scale() / static_cast<float>(context_));
}

}  // namespace shardplan::validator
