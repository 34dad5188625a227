#include "program/compiled/run.h"

#include "program/compiled/aten_order.h"
#include "program/compiled/compiled_run.h"
#include "program/compiled/guards.h"
#include "program/compiled/partition.h"
#include "program/compiled/trials.h"
#include "program/tape/checkpoint.h"

namespace shardplan {
namespace compiled {

TraceOptions CompiledRun::trace_options(const Model& model) const {
  const bool together = options_.graph_parts == nullptr;
  // Else each graph has a gradient.
  const bool one_gradient = together && !model.facts.breaks_between_layers;
  const bool widens = view_.graph().widens_outputs();
  return {.defers_weights = mode_ == TapeMode::redo,
          .tied = one_gradient
                      ? tied_head(model, view_, options_.product_balance, options_.draws_again)
                      : TiedHead{},
          .loss_apart = options_.loss_apart,
          .masked = options_.traced_whole,
          .parts = parts_of(options_),
          .breaks = options_.graph_breaks,
          .multiprocessors = options_.multiprocessors,
          .product_balance = options_.product_balance,
          .eager_tables = model.facts.breaks_between_layers,
          .begins_graph = !options_.traced_whole || model.facts.breaks_between_layers,
          .input_again = options_.input_again,
          .shared_before = options_.shared_before,
          .widens = widens && (!together || !(options_.ends_apart || options_.loss_apart)),
          .tells = options_.output_is_told,
          .embeds_in_module = model.facts.embeds_in_module,
          .scattered_operands = options_.scattered_operands};
}

ChainInFront CompiledRun::chain_in_front(const Model& model, const Regime& regime,
                                         const Sizes& sizes, DType input) {
  tape::GraphView view(model, options_.checkpointed->graph, regime, sizes, input, true);
  const Trace front(view, trace_options(model));
  const std::vector<std::int64_t> order = aten_order(view, front);
  if (order.size() < static_cast<std::size_t>(front.first_backward)) return {};
  return {order.back(), aten_order(view_, trace_)};
}

void CompiledRun::run() {
  if (trace_.input != kNone)
    storage_[at(trace_.input)] =
        storages_.adopt(round_up(bytes_of(trace_.input), kAllocationUnit), kChainedInputSlot,
                        Category::activations, options_.pool);
  // A cast of what is returned may be made again; the thing itself is there.
  const NodeId as_made = trace_.widened ? kNone : trace_.returned;
  const std::vector<bool> tags = tape::kept_results(view_.model(), view_.graph(), options_);
  kept_ = mode_ != TapeMode::keep ? flags()
          : tags.empty()          ? kept_nodes(trace_.graph, trace_.first_backward, as_made, chain_)
                                  : kept_under_tags(trace_.graph, trace_.first_backward, tags);
  if (trace_.leaf != kNone && mode_ == TapeMode::keep) kept_[at(trace_.leaf)] = true;
  if (options_.input_again && trace_.input != kNone) kept_[at(trace_.input)] = false;
  if (mode_ == TapeMode::keep && view_.regime().zero3_linear)
    keep_read_by_linears(trace_.graph, view_.graph(), kept_);
  if (options_.output_again && mode_ == TapeMode::keep) keep_output_alone();
  if (mode_ != TapeMode::redo) forward();
  if (options_.graph_breaks) keep_tables();
  if (mode_ == TapeMode::keep) keep_shared();
  if (mode_ != TapeMode::discard) backward();
  run_.trials = trial_events(trace_.timed);
  run_.slots = storages_.slots();
}

/// The rotation between graphs is a function of autograd's, which keeps its tables.
void CompiledRun::keep_tables() {
  for (const Op& op : view_.graph().ops())
    for (std::size_t k = 1; op.kind == OpKind::rotary && tape::GraphView::reads(op, k); ++k)
      if (view_.state(op.in[k]).shared != kNone)
        run_.saved_shared.push_back(view_.state(op.in[k]).shared);
}

/// The block that is given the output is computed again in the same graph, so that the partitioner
/// may make the output again from what its own segment keeps, such as the sum that embeddings
/// normalize. Counted is the output; the other is made from the tables when it is needed.
void CompiledRun::keep_output_alone() {
  if (trace_.output == kNone) return;
  std::vector<NodeId> open{trace_.output};
  while (!open.empty()) {
    const Node& made = node(open.back());
    open.pop_back();
    for (std::size_t k = 0; k < made.inputs; ++k) {
      const NodeId in = made.in[k];
      const bool smaller = bytes_of(in) <= bytes_of(trace_.output);
      const bool as_many = node(in).elements == node(trace_.output).elements;
      if (kept_[at(in)] && node(in).kind == NodeKind::pointwise && as_many && smaller) {
        kept_[at(in)] = false;
        return;
      }
      if (!kept_[at(in)] && traits_of(node(in).kind).recomputable) open.push_back(in);
    }
  }
}

/// What several segments read, such as a mask that tells positions apart.
void CompiledRun::keep_shared() {
  for (const Input& in : view_.graph().inputs())
    if (in.kind == InputKind::shared && kept_[at(trace_.given(in.value))])
      run_.saved_shared.push_back(in.shared);
}

void CompiledRun::forward() {
  begin_pass();
  // Before CUDA graphs it is also looked where each adapter lies (torch/_inductor/
  // cudagraph_trees.py, check_static_inputs_are_stable).
  const std::int32_t checked = (records() ? 2 : 1) * options_.guards;
  if (checked > 0) writer_.launch(guards(checked));
  want(trace_.output);
  want(trace_.returned);
  want(trace_.passed);
  if (mode_ == TapeMode::discard) want(trace_.input);
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    if (kept_[at(id)]) want(id);
  run_pass();
  if (options_.product_again && trace_.tangent != kNone)
    product_ = storages_.allocate(
        checked_mul(node(trace_.input).elements, size_of(view_.regime().compute)),
        Category::activations);
  if (trace_.passed != kNone && !kept_[at(trace_.passed)]) drop(trace_.passed);
  export_output();
  copy_returned();
  // The caller drops the model's output when it has the loss.
  if (trace_.returned != kNone && !kept_[at(trace_.returned)]) drop(trace_.returned);
}

/// accelerate's fp32 copy of what the model returns is made outside of what is compiled, but for
/// DDP, inside of which it is wrapped; DDP's own copy comes behind. Where the loss's graph ends
/// before the caller's frame does, that is a graph of its own, whose result is in the pool: an
/// allocator's history of Llama 3.2 1B with adapters.
void CompiledRun::copy_returned() {
  if (trace_.returned == kNone) return;
  const Node& returned = node(trace_.returned);
  const auto elements = static_cast<double>(returned.elements);
  const auto copy = [&](DType type, Stream pool) {
    const StorageId made = storages_.allocate(checked_mul(returned.elements, size_of(type)),
                                              Category::logits_and_loss, pool);
    const double bytes = elements * static_cast<double>(size_of(returned.type) + size_of(type));
    writer_.launch(
        tape::memory_kernel(KernelKind::strided, Issue::python, returned.type, bytes, elements));
    return made;
  };
  const bool widens = view_.graph().widens_outputs() && returned.type != DType::f32;
  const bool apart = options_.ends_apart || options_.loss_apart;
  const Stream traced = apart ? options_.pool : Stream::compute;
  const StorageId wide = widens ? copy(DType::f32, traced) : kExternal;
  if (view_.graph().clones_outputs())
    storages_.unref(copy(widens ? DType::f32 : returned.type, Stream::compute));
  if (widens) storages_.unref(wide);
  writer_.flush();
}

void CompiledRun::export_output() {
  if (trace_.output == kNone) return;
  const StorageId id = storage_[at(trace_.output)];
  run_.output_dtype = node(trace_.output).type;
  run_.output_needs_grad = view_.state(view_.graph().output()).needs_grad;
  if (id == kExternal) return;
  run_.output_bytes = storages_.of(id).bytes;
  storages_.set_exported(id);
  run_.output_slot = storages_.of(id).slot;
}

}  // namespace compiled

TapeRun run_compiled(const Model& model, const Segment& segment, const Regime& regime,
                     const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options) {
  TapeRun run;
  compiled::CompiledRun(model, segment, regime, sizes, input, mode, options, run).run();
  return run;
}

}  // namespace shardplan
