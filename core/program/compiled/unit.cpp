// One unit of a pass: its kernels, and what is written over what.
#include "program/compiled/compiled_run.h"

#include <algorithm>
#include <utility>

#include "program/compiled/kernels.h"
#include "program/compiled/loss.h"

namespace shardplan::compiled {

/// A graph's call takes the host longer than what it starts; a recorded one starts all that is in
/// it. A model in one piece has one call a pass, which is not counted.
tape::KernelList CompiledRun::issued(tape::KernelList list, const Unit& unit) {
  const bool one_graph = options_.graph_parts == nullptr && options_.traced_whole;
  const bool calls = !one_graph && unit.part != kNone && unit.part != open_part_;
  if (calls) open_part_ = unit.part;
  tape::KernelList started;
  for (Kernel kernel : list) {
    kernel.recorded = options_.pool == Stream::graphs && !(calls && started.size() == 0);
    if (calls && started.size() == 0) kernel.issue = Issue::graph;
    started.add(kernel);
  }
  return started;
}

/// `dying`: nobody reads them afterwards. A kernel that is compiled writes over one of them that is
/// as large as its result (torch/_inductor/scheduler.py, decide_inplace_update); not over what is
/// returned to the caller too, which AOTAutograd does not donate.
void CompiledRun::run_unit(const Unit& unit, std::vector<NodeId> dying) {
  const auto as_large = [&](NodeId id) {
    return std::find_if(unit.writes.begin(), unit.writes.end(), [&](NodeId made) {
      const bool own = node(made).gradient_of == kNone && node(made).kind != NodeKind::scatter;
      return own && bytes_of(made) == bytes_of(id);
    });
  };
  const auto fits = [&](NodeId id) {
    const bool read = std::find(unit.reads.begin(), unit.reads.end(), id) != unit.reads.end();
    // Of the logits that a loss's own graph is given another graph is the owner.
    const bool given = options_.loss_apart && node(id).kind == NodeKind::product && node(id).logits;
    return read && !given && id != trace_.returned && storage_[at(id)] != kExternal &&
           as_large(id) != unit.writes.end();
  };
  hooks_.enter(unit.part, node(unit.writes.front()).op);
  if (!unit.call && !keeps_buffers()) {
    const auto over = std::find_if(dying.begin(), dying.end(), fits);
    if (over != dying.end()) {
      take_place(*as_large(*over), *over);
      dying.erase(over);
    }
  }
  read_again(unit);
  if (unit.call) write_over(unit, dying);
  for (const NodeId id : unit.writes) store(id);
  const StorageId workspace =
      unit.workspace > 0 ? storages_.allocate(unit.workspace, Category::workspace, options_.pool)
                         : kExternal;
  if (const Op* loss = fused_loss(view_, trace_, unit))
    allocate_loss(view_, *loss, is_cut(parts_of(options_)), storages_,
                  [&](std::int64_t chunk) { trials_.time(trace_.graph, unit, chunk); });
  if (!unit.call) trials_.time(trace_.graph, unit, 0);
  const bool again = in_backward_ && !node(unit.writes.front()).backward;
  for (const Kernel& kernel :
       issued(kernels_of(trace_.graph, unit, view_, options_.traced_whole), unit))
    again ? writer_.launch_again(kernel) : writer_.launch(kernel);
  storages_.unref(workspace);
  for (const NodeId id : dying) drop(id);
  hand_over(unit);
  if (node(unit.writes.front()).backward) storages_.unref(std::exchange(copied_, kExternal));
}

/// Nothing is asked of the allocator. What the segment is given and what it hands on have names of
/// the caller's, which its own tensors do not have.
void CompiledRun::take_place(NodeId made, NodeId over) {
  StorageId& place = storage_[at(over)];
  const bool given = storages_.of(place).slot < 0;
  const bool handed_on = made == trace_.output || (pass_.wanted[at(made)] && !kept_[at(made)]);
  if (given || handed_on || storage_[at(made)] != kExternal) return drop(over);
  storage_[at(made)] = std::exchange(place, kExternal);
}

/// Behind the loss's own graph the one that ends with the head is called with the gradient of what
/// it returned, and with zeros that autograd makes for what its caller made no use of. Its call
/// holds both until it ends.
void CompiledRun::hand_over(const Unit& unit) {
  const NodeId given = trace_.returned_gradient;
  if (given == kNone || trace_.passed == kNone) return;
  if (std::find(unit.writes.begin(), unit.writes.end(), given) == unit.writes.end()) return;
  storages_.unref(std::exchange(zeros_, kExternal));
  const StorageId zeros = storages_.allocate(bytes_of(trace_.passed), Category::activations);
  if (options_.graph_parts == nullptr)
    run_.held.push_back(storages_.free_event(zeros));
  else
    zeros_ = zeros;
}

/// The checkpointed block in front has computed it where it is read first.
void CompiledRun::read_again(const Unit& unit) {
  if (!options_.input_again || !node(unit.writes.front()).backward || trace_.input == kNone) return;
  const bool reads =
      std::find(unit.reads.begin(), unit.reads.end(), trace_.input) != unit.reads.end();
  if (!reads || storage_[at(trace_.input)] != kExternal) return;
  store(trace_.input);
  storages_.unref(std::exchange(product_, kExternal));
}

/// A kernel's result takes the place of what it is written over where that ends here. A gradient's
/// place is what its framework says: what it is handed on from goes before.
void CompiledRun::write_over(const Unit& unit, std::vector<NodeId>& dying) {
  const NodeId made = unit.writes.front();
  const NodeId over = node(made).over;
  const auto found = std::find(dying.begin(), dying.end(), over);
  if (over == kNone || found == dying.end() || storage_[at(over)] == kExternal) return;
  dying.erase(found);
  if (node(made).gradient_of != kNone) return drop(over);
  storage_[at(made)] = std::exchange(storage_[at(over)], kExternal);
}

}  // namespace shardplan::compiled
