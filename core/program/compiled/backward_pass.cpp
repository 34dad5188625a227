// The backward pass of a compiled segment: from the gradient of its output to that of its input.
#include "program/compiled/compiled_run.h"

#include <utility>

namespace shardplan::compiled {

void CompiledRun::backward() {
  if (mode_ == TapeMode::keep) writer_.begin_backward();
  in_backward_ = true;
  begin_backward();
  unpack_arguments();
  first_slot_ = storages_.slots();
  begin_pass();
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    if (kept_[at(id)]) pass_.there[at(id)] = true;
  if (trace_.returned != kNone && kept_[at(trace_.returned)] && !options_.frees_returned)
    want(trace_.returned);
  want(trace_.input_gradient);
  want(trace_.returned_gradient);
  for (const NodeId id : trace_.held_for_table) want(id);
  for (NodeId id = trace_.first_backward; id < trace_.graph.end(); ++id)
    if (node(id).gradient_of != kNone || (node(id).of_weight && node(id).elements == 0)) want(id);
  run_pass();
  end_backward();
}

/// Before the first kernel the function that Inductor writes has each tensor that was kept looked
/// at (assert_size_stride), and autograd takes each gradient of a parameter over behind it
/// (AccumulateGrad): in profiled steps of a model in one piece 2 to 4 us each. A graph of a layer
/// has that in its call.
void CompiledRun::unpack_arguments() {
  if (options_.graph_parts != nullptr || !options_.traced_whole ||
      view_.model().facts.breaks_between_layers)
    return;
  std::int32_t count = 0;
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    if (node(id).gradient_of != kNone || (kept_[at(id)] && node(id).kind != NodeKind::input))
      ++count;
  Kernel call = tape::call_kernel(Issue::listed, DType::f32);
  call.calls = count;
  if (count > 0) writer_.launch(call);
}

/// The gradient of the output is there. AOTAutograd makes zeros for what is returned beside the
/// loss; autograd's node holds them, and what is kept, until the pass or a graph apart is over.
void CompiledRun::begin_backward() {
  const ValueId output = view_.graph().output();
  if (output == kNone) return;
  const std::int64_t bytes =
      round_up(view_.bytes_of(output, view_.state(output).dtype), kAllocationUnit);
  const StorageId gradient =
      storages_.adopt(bytes, kChainedGradientSlot, Category::activations, options_.pool);
  if (trace_.tangent != kNone)
    storage_[at(trace_.tangent)] = gradient;
  else if (options_.output_gets_grad)
    storages_.unref(gradient);
  if (trace_.returned == kNone || trace_.tangent == kNone) return;
  // The loss has a graph of its own, behind a break, to which the head's is handed.
  if (options_.graph_breaks && node(trace_.returned).part != node(trace_.output).part) return;
  if (options_.loss_apart && !trace_.widened) return;
  const StorageId zeros = storages_.allocate(bytes_of(trace_.returned), Category::logits_and_loss);
  const bool one_of_graphs = options_.pool == Stream::graphs && options_.graph_parts != nullptr;
  if (options_.ends_apart || options_.loss_apart || one_of_graphs)
    zeros_ = zeros;
  else
    run_.held.push_back(storages_.free_event(zeros));
  // A graph reads what it is given in each step from a place of its own, which it has from its
  // recording on (torch/_inductor/cudagraph_trees.py, _copy_inputs_and_remove_from_src).
  if (records())
    copied_ = storages_.allocate_later(storages_.of(zeros).bytes, Category::logits_and_loss,
                                       options_.pool);
}

void CompiledRun::end_backward() {
  for (const StorageId id : spare_) storages_.unref(id);
  leave_waiting();
  storages_.unref(zeros_);
  storages_.unref(std::exchange(product_, kExternal));
  if (trace_.returned != kNone && !options_.frees_returned) hold_to_end(trace_.returned);
  if (const NodeId given = trace_.returned_gradient; given != kNone)
    options_.graph_parts == nullptr ? hold_to_end(given) : drop(given);
  // Of an aligned head, or one in fp32, the gradient that waits for the table is that one.
  for (const NodeId id : trace_.held_for_table)
    if (id != trace_.returned_gradient) hold_to_end(id);
  if (trace_.input_gradient == kNone) return;
  StorageId& gradient = storage_[at(trace_.input_gradient)];
  if (trace_.input_gradient == trace_.tangent) {  // handed on under a name of this pass
    const tape::Storage s = storages_.of(gradient);
    storages_.unref(gradient);
    gradient = storages_.allocate(s.bytes, s.category, options_.pool);
  }
  run_.input_gradient_slot = storages_.of(gradient).slot;
}

}  // namespace shardplan::compiled
