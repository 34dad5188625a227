#include "lowering/gradient_flow.h"

#include <algorithm>

#include "trainers/description.h"

namespace shardplan {
namespace {

/// No parameter of the segment trains, and nothing in it is told to need a gradient.
bool frozen(const Model& model, const Segment& segment) {
  return std::none_of(segment.graph.ops().begin(), segment.graph.ops().end(), [&](const Op& op) {
    const auto trains = [&](ParameterId id) {
      return id != kNone && model.parameters[static_cast<std::size_t>(id)].trainable;
    };
    return op.asked || trains(op.weight) || trains(op.bias);
  });
}

}  // namespace

bool frozen_output(const Model& model, const Segment& segment) {
  return frozen(model, segment) && segment.graph.inputs().empty();
}

bool has_no_graph(const Model& model, const Segment& segment, const Incoming& in) {
  const std::vector<Input>& inputs = segment.graph.inputs();
  return !inputs.empty() && frozen(model, segment) &&
         std::all_of(inputs.begin(), inputs.end(), [&](const Input& i) {
           return i.kind == InputKind::chained
                      ? !in.needs_grad
                      : !(*in.shared_trains)[static_cast<std::size_t>(i.shared)];
         });
}

bool is_told(const Model& model, const Plan& plan, const Regime& regime, std::size_t index) {
  if (model.segments[index].whole || model.facts.asks_itself) return false;
  if (plan.recomputes_blocks()) return true;
  if (std::none_of(model.parameters.begin(), model.parameters.end(),
                   [](const Parameter& p) { return p.adapter; }))
    return false;
  if (plan.trainer->tells_embeddings) return true;
  const bool adapted =
      index + 1 < model.segments.size() && !frozen(model, model.segments[index + 1]);
  return regime.zero3_linear && (index == 0 || adapted);
}

void note_shared(const Model& model, std::size_t index, const TapeRun& tape, bool told,
                 std::vector<bool>& trains) {
  for (std::size_t i = 0; i < model.shared.size(); ++i) {
    const Shared& shared = model.shared[i];
    if (shared.is_output && static_cast<std::size_t>(shared.maker) == index)
      trains[i] = shared.needs_grad && (told || tape.output_needs_grad);
  }
}

}  // namespace shardplan
