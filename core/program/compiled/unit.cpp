// One unit of a pass: its kernels, and what is written over what.
#include "program/compiled/compiled_run.h"

#include <algorithm>
#include <utility>

#include "program/compiled/kernels.h"
#include "program/compiled/loss.h"

namespace shardplan::compiled {
namespace {

/// A value is put elsewhere in its tensor than where it was read.
bool moves(const Op& op) {
  return op.kind == OpKind::cat || op.kind == OpKind::copy || op.kind == OpKind::rotary ||
         op.kind == OpKind::fold_heads;
}

/// Of what another node of the kernel makes.
bool stays_inside(const Unit& unit, NodeId id) {
  return !contains(unit.writes, id) &&
         std::ranges::any_of(unit.nodes, [&](const Made& made) { return made.id == id; });
}

}  // namespace

/// A graph's call takes the host longer than what it starts; a recorded one starts all that is in
/// it. A model in one piece has one call a pass, which is not counted.
tape::KernelList CompiledRun::issued(tape::KernelList list, const Unit& unit) {
  const bool one_graph = options_.graph_parts == nullptr && options_.traced_whole &&
                         !view_.model().facts.breaks_between_layers;
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

/// `dying`: nobody reads them afterwards.
void CompiledRun::run_unit(const Unit& unit, std::vector<NodeId> dying) {
  hooks_.enter(unit.part, node(unit.writes.front()).op);
  note_operands(unit, dying);
  if (!unit.call && !keeps_buffers()) write_in_place(unit, dying);
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
  const bool ahead = node(unit.writes.front()).ahead;  // the next block's own are counted there
  const bool again = in_backward_ && !node(unit.writes.front()).backward;
  for (const Kernel& kernel :
       ahead ? tape::KernelList{}
             : issued(kernels_of(trace_.graph, unit, view_, options_.traced_whole), unit))
    again ? writer_.launch_again(kernel) : writer_.launch(kernel);
  storages_.unref(workspace);
  for (const NodeId id : dying) drop(id);
  hand_over(unit);
  if (node(unit.writes.front()).backward) storages_.unref(std::exchange(copied_, kExternal));
}

/// Of the kernel that makes the gradient that the segment hands on.
void CompiledRun::note_operands(const Unit& unit, const std::vector<NodeId>& dying) {
  const NodeId made = trace_.input_gradient;
  if (std::find(unit.writes.begin(), unit.writes.end(), made) == unit.writes.end()) return;
  std::int64_t bytes = -bytes_of(made);
  for (const NodeId id : dying)
    if (storage_[at(id)] != kExternal)
      bytes = checked_add(bytes, storages_.of(storage_[at(id)]).bytes);
  run_.gradient_operands = std::max<std::int64_t>(bytes, 0);
}

/// Whether `made` is computed from `read` element for element, each where it is read, in its type.
bool CompiledRun::lies_over(const Made& made, NodeId read) const {
  if (node(made.id).type != node(read).type) return false;
  std::vector<std::pair<NodeId, bool>> open{{made.id, false}};  // and whether it is moved behind
  for (std::size_t k = 0; k < open.size(); ++k) {
    const auto [id, behind] = open[k];
    const Node& n = node(id);
    const bool moved = behind || (n.op != kNone && moves(view_.graph().ops()[at(n.op)]));
    for (std::size_t i = 0; i < n.inputs; ++i) {
      const std::pair<NodeId, bool> in{n.in[i], moved};
      if (in.first == read && moved) return false;
      const bool known = std::find(open.begin(), open.end(), in) != open.end();
      if (!contains(made.reads, in.first) && !known) open.push_back(in);
    }
  }
  return true;
}

/// A kernel that is compiled writes over what ends there and is as large as its result, but not
/// over what is returned to the caller too, which AOTAutograd does not donate. Of the logits that a
/// loss's own graph is given another graph is the owner.
bool CompiledRun::may_take(const Unit& unit, const Made& made, NodeId over) const {
  const bool given =
      options_.loss_apart && node(over).kind == NodeKind::product && node(over).logits;
  if (given || over == trace_.returned || bytes_of(over) != bytes_of(made.id)) return false;
  return !follows_places() || made_behind(made.id) ||
         (lies_over(made, over) && may_write_over(unit, made, over));
}

/// What ends with the unit and has the place of the result; kNone: the result has one of its own.
NodeId CompiledRun::written_over(const Unit& unit, const Made& made,
                                 const std::vector<NodeId>& dying) const {
  const Node& result = node(made.id);
  if (unit.call) return contains(dying, result.over) ? result.over : kNone;
  if (!contains(unit.writes, made.id) || result.gradient_of != kNone) return kNone;
  if (result.kind == NodeKind::scatter) return kNone;
  // What stays inside of the kernel had a buffer to the scheduler.
  const auto over = std::find_if(made.reads.begin(), made.reads.end(), [&](NodeId id) {
    return (contains(dying, id) || stays_inside(unit, id)) && may_take(unit, made, id);
  });
  return over == made.reads.end() || stays_inside(unit, *over) ? kNone : *over;
}

void CompiledRun::write_in_place(const Unit& unit, std::vector<NodeId>& dying) {
  std::vector<NodeId> own;
  for (const NodeId id : dying)
    if (storage_[at(id)] != kExternal) own.push_back(id);
  for (const Made& made : unit.nodes) {
    const NodeId over = written_over(unit, made, own);
    if (over == kNone) continue;
    take_place(made.id, over);
    std::erase(dying, over);
    std::erase(own, over);
    if (!follows_places()) return;
  }
}

/// Nothing is asked of the allocator. What the segment is given and what it hands on have names of
/// the caller's, which its own tensors do not have.
void CompiledRun::take_place(NodeId made, NodeId over) {
  StorageId& place = storage_[at(over)];
  const std::int32_t slot = storages_.of(place).slot;
  const bool given = slot < 0 && slot != kCarriedSlot;
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
