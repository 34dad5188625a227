#include "program/compiled/run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/compiled/cuts.h"
#include "program/compiled/guards.h"
#include "program/compiled/kernels.h"
#include "program/compiled/loss.h"
#include "program/compiled/module_hooks.h"
#include "program/compiled/partition.h"
#include "program/compiled/trace.h"
#include "program/compiled/trials.h"
#include "program/compiled/units.h"
#include "program/tape/checkpoint.h"
#include "program/tape/storages.h"
#include "program/tape/writer.h"

namespace shardplan {
namespace compiled {
namespace {

using tape::kExternal;
using tape::StorageId;

class CompiledRun {
 public:
  CompiledRun(const Model& model, const Segment& segment, const Regime& regime, const Sizes& sizes,
              DType input, TapeMode mode, const TapeOptions& options, TapeRun& run)
      : mode_(mode),
        run_(run),
        view_(model, segment.graph, regime, sizes, input, options.input_needs_grad),
        options_(options),
        trace_(view_, trace_options(model)),
        writer_(run, mode, false),
        storages_(writer_, mode, 0),
        trials_(writer_, options.l2_cache_bytes),
        storage_(trace_.graph.nodes.size(), kExternal),
        pass_{{}, flags(), flags()},
        hooks_(writer_, segment.graph,
               options.module_hooks ? parts_of(options) : std::vector<std::int32_t>{}) {}

  void run();

 private:
  std::vector<bool> flags() const { return std::vector<bool>(trace_.graph.nodes.size(), false); }
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }
  const Node& node(NodeId id) const { return trace_.graph.at(id); }
  std::int64_t bytes_of(NodeId id) const {
    return checked_mul(node(id).elements, size_of(node(id).type));
  }
  Category category_of(NodeId id) const;
  void want(NodeId id) {
    if (id != kNone) pass_.wanted[at(id)] = true;
  }
  TraceOptions trace_options(const Model& model) const;
  void begin_pass();
  void forward();
  void keep_tables();
  void copy_returned();
  void backward();
  void begin_backward();
  void end_backward();
  void run_pass();
  std::vector<std::vector<NodeId>> hold_arguments(const std::vector<Unit>& units,
                                                  std::vector<std::size_t>& last);
  bool is_eager_kernel(const Unit& unit) const {
    return unit.part == kNone && node(unit.writes.front()).kind == NodeKind::kernel;
  }
  void run_unit(const Unit& unit, std::vector<NodeId> dying);
  /// The backward pass computes a whole block again.
  bool keeps_buffers() const {
    return mode_ == TapeMode::redo || (in_backward_ && options_.kept == KeptResults::untagged);
  }
  /// A block's buffer waits for the next block's: the expected peak does not rise.
  bool waits(std::int64_t bytes) const {
    const bool block = !options_.last_segment && trace_.input != kNone && !options_.graph_parts;
    return in_backward_ && block && bytes + working_set_ <= options_.believed_room;
  }
  void hand_over(const Unit& unit);
  void read_again(const Unit& unit);
  void write_over(const Unit& unit, std::vector<NodeId>& dying);
  tape::KernelList issued(tape::KernelList list, const Unit& unit);
  void store(NodeId id);
  StorageId take(std::int64_t bytes, Category category);
  void drop(NodeId id);
  void export_output();
  void hold_to_end(NodeId id) {
    const StorageId held = storage_[at(id)];
    if (held != kExternal) run_.held.push_back(storages_.free_event(held));
  }

  TapeMode mode_;
  TapeRun& run_;
  tape::GraphView view_;
  const TapeOptions& options_;
  Trace trace_;
  tape::TapeWriter writer_;
  tape::Storages storages_;
  KernelTrials trials_;
  std::vector<StorageId> storage_;  ///< by node
  std::vector<bool> kept_;          ///< by node
  StorageId zeros_ = kExternal;    ///< the gradient of what is returned, where its graph ends first
  StorageId product_ = kExternal;  ///< kept for what the segment begins with
  StorageId copied_ = kExternal;   ///< what a CUDA graph is given, for its first kernel
  std::vector<StorageId> spare_;   ///< whose tensors are gone, for others of their size
  Pass pass_;
  bool in_backward_ = false;
  std::int64_t working_set_ = 0;    ///< of the pass, where no buffer waits
  std::int32_t open_part_ = kNone;  ///< the graph that is being called
  ModuleHooks hooks_;
};

Category CompiledRun::category_of(NodeId id) const {
  const Node& made = node(id);
  if (made.logits) return Category::logits_and_loss;
  // Copies of weights in the compute type.
  const bool weight = made.inputs == 1 && node(made.in[0]).kind == NodeKind::input &&
                      made.elements == node(made.in[0]).elements && !made.backward;
  return weight ? Category::other : Category::activations;
}

TraceOptions CompiledRun::trace_options(const Model& model) const {
  const bool together = options_.graph_parts == nullptr;  // else each graph has a gradient
  const bool widens = view_.graph().widens_outputs();
  return {.defers_weights = mode_ == TapeMode::redo,
          .tied = together ? tied_head(model, view_, options_.product_balance, options_.draws_again)
                           : TiedHead{},
          .loss_apart = options_.loss_apart,
          .masked = options_.traced_whole,
          .parts = parts_of(options_),
          .breaks = options_.graph_breaks,
          .multiprocessors = options_.multiprocessors,
          .product_balance = options_.product_balance,
          .input_again = options_.input_again,
          .widens = widens && (!together || options_.pool == Stream::graphs),
          .widens_unpadded = widens && !options_.loss_apart && !options_.ends_apart};
}

void CompiledRun::begin_pass() {
  open_part_ = kNone;
  pass_ = {{}, flags(), flags()};
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    pass_.there[at(id)] = node(id).kind == NodeKind::input || node(id).kind == NodeKind::chained;
}

void CompiledRun::run() {
  if (trace_.input != kNone)
    storage_[at(trace_.input)] =
        storages_.adopt(round_up(bytes_of(trace_.input), kAllocationUnit), kChainedInputSlot,
                        Category::activations, options_.pool);
  // A cast of what is returned may be made again; the thing itself is there.
  const NodeId as_made = trace_.widened ? kNone : trace_.returned;
  const std::vector<bool> tags = tape::kept_results(view_.graph(), options_);
  kept_ = mode_ != TapeMode::keep ? flags()
          : tags.empty()          ? kept_nodes(trace_.graph, trace_.first_backward, as_made)
                                  : kept_under_tags(trace_.graph, trace_.first_backward, tags);
  if (options_.input_again && trace_.input != kNone) kept_[at(trace_.input)] = false;
  if (mode_ == TapeMode::keep && view_.regime().zero3_linear)
    keep_read_by_linears(trace_.graph, view_.graph(), kept_);
  if (mode_ != TapeMode::redo) forward();
  if (options_.graph_breaks) keep_tables();
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

void CompiledRun::forward() {
  begin_pass();
  writer_.launch(guards_of_adapters(view_));
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
/// DDP, inside of which it is wrapped; DDP's own copy comes behind.
void CompiledRun::copy_returned() {
  if (trace_.returned == kNone) return;
  const Node& returned = node(trace_.returned);
  const auto elements = static_cast<double>(returned.elements);
  const auto copy = [&](DType type) {
    const StorageId made = storages_.allocate(checked_mul(returned.elements, size_of(type)),
                                              Category::logits_and_loss);
    const double bytes = elements * static_cast<double>(size_of(returned.type) + size_of(type));
    writer_.launch(
        tape::memory_kernel(KernelKind::strided, Issue::python, returned.type, bytes, elements));
    return made;
  };
  const bool widens = view_.graph().widens_outputs() && returned.type != DType::f32;
  const StorageId wide = widens ? copy(DType::f32) : kExternal;
  if (view_.graph().clones_outputs()) storages_.unref(copy(widens ? DType::f32 : returned.type));
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

void CompiledRun::backward() {
  if (mode_ == TapeMode::keep) writer_.begin_backward();
  in_backward_ = true;
  begin_backward();
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
  // A graph reads what it is given in each step from a place of its own.
  if (options_.pool == Stream::graphs)
    copied_ =
        storages_.allocate(storages_.of(zeros).bytes, Category::logits_and_loss, options_.pool);
}

void CompiledRun::end_backward() {
  for (const StorageId id : spare_) storages_.unref(id);
  storages_.unref(zeros_);
  storages_.unref(std::exchange(product_, kExternal));
  if (trace_.returned != kNone && !options_.frees_returned) hold_to_end(trace_.returned);
  if (const NodeId given = trace_.returned_gradient; given != kNone)
    options_.graph_parts == nullptr ? hold_to_end(given) : drop(given);
  for (const NodeId id : trace_.held_for_table) hold_to_end(id);
  if (trace_.input_gradient == kNone) return;
  StorageId& gradient = storage_[at(trace_.input_gradient)];
  if (trace_.input_gradient == trace_.tangent) {  // handed on under a name of this pass
    const tape::Storage s = storages_.of(gradient);
    storages_.unref(gradient);
    gradient = storages_.allocate(s.bytes, s.category, options_.pool);
  }
  run_.input_gradient_slot = storages_.of(gradient).slot;
}

/// What a graph is called with is held by its caller until it returns, but for what is kept for its
/// backward pass: by unit, what goes at its end. `last`: by node, the last unit that uses it.
std::vector<std::vector<NodeId>> CompiledRun::hold_arguments(const std::vector<Unit>& units,
                                                             std::vector<std::size_t>& last) {
  std::vector<std::vector<NodeId>> held(units.size());
  if (options_.graph_parts == nullptr) return held;
  std::map<std::int32_t, std::size_t> ends;  // by part, its last unit
  for (std::size_t u = 0; u < units.size(); ++u) ends[units[u].part] = u;
  for (const Unit& unit : units)
    for (const NodeId id : unit.reads) {
      if (is_eager_kernel(unit)) continue;
      const std::size_t end = ends.at(unit.part);
      const bool handed = options_.graph_breaks && id == trace_.tangent;
      const bool own = node(id).part == unit.part || pass_.there[at(id)];
      if ((own && !handed) || last[at(id)] >= end) continue;
      last[at(id)] = end;
      held[end].push_back(id);
    }
  return held;
}

/// Computes what is wanted and not there.
void CompiledRun::run_pass() {
  pass_.order = order_of(trace_.graph, pass_);
  const std::vector<Unit> units = units_of(trace_.graph, pass_);
  constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  std::vector<std::size_t> last(trace_.graph.nodes.size(), kNever);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const NodeId id : units[u].writes) last[at(id)] = u;
    for (const NodeId id : units[u].reads) last[at(id)] = u;
  }
  std::vector<bool> stored;
  for (const StorageId id : storage_) stored.push_back(id != kExternal);
  working_set_ = working_set(trace_.graph, pass_, units, last, std::move(stored));
  const std::vector<std::vector<NodeId>> arguments = hold_arguments(units, last);
  bool again = mode_ == TapeMode::redo;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    if (again && node(unit.writes.front()).backward) {
      writer_.begin_backward();
      again = false;
    }
    std::vector<NodeId> dying;
    const auto die = [&](NodeId id) {
      if (last[at(id)] == u && !pass_.wanted[at(id)]) dying.push_back(id);
    };
    for (const NodeId id : unit.reads) die(id);
    for (const NodeId id : unit.writes) die(id);
    for (const NodeId id : arguments[u])
      if (std::find(dying.begin(), dying.end(), id) == dying.end()) die(id);
    run_unit(unit, std::move(dying));
  }
  hooks_.leave();
  // What was there and is neither read nor wanted.
  for (NodeId id = 0; id < trace_.graph.end(); ++id)
    if (pass_.there[at(id)] && last[at(id)] == kNever && !pass_.wanted[at(id)]) drop(id);
  writer_.flush();
}

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
  const auto fits = [&](NodeId id) {
    const bool read = std::find(unit.reads.begin(), unit.reads.end(), id) != unit.reads.end();
    return read && id != trace_.returned && !node(id).padded && storage_[at(id)] != kExternal &&
           std::any_of(unit.writes.begin(), unit.writes.end(), [&](NodeId made) {
             return node(made).gradient_of == kNone && bytes_of(made) == bytes_of(id);
           });
  };
  hooks_.enter(unit.part, node(unit.writes.front()).op);
  if (!unit.call && !keeps_buffers()) {
    const auto over = std::find_if(dying.begin(), dying.end(), fits);
    if (over != dying.end()) {
      drop(*over);
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
  writer_.launch(issued(kernels_of(trace_.graph, unit, view_, options_.traced_whole), unit));
  storages_.unref(workspace);
  for (const NodeId id : dying) drop(id);
  hand_over(unit);
  if (node(unit.writes.front()).backward) storages_.unref(std::exchange(copied_, kExternal));
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

void CompiledRun::store(NodeId id) {
  const Node& made = node(id);
  if (made.gradient_of != kNone) {
    const ParameterId parameter = made.gradient_of;
    const std::int64_t bytes =
        view_.bytes_of(view_.parameter(parameter), view_.parameter_type(parameter));
    writer_.emit(TapeEvent::Kind::gradient, Category::gradients, parameter,
                 round_up(bytes, kAllocationUnit));
    return;
  }
  if (storage_[at(id)] != kExternal) return;  // written over another
  if (made.elements > 0) storage_[at(id)] = take(bytes_of(id), category_of(id));
}

/// A storage of that size that is to spare, or a new one.
StorageId CompiledRun::take(std::int64_t bytes, Category category) {
  const std::int64_t whole = round_up(bytes, kAllocationUnit);
  const auto fits = [&](StorageId spare) { return storages_.of(spare).bytes == whole; };
  const auto found = std::find_if(spare_.begin(), spare_.end(), fits);
  if (found == spare_.end()) return storages_.allocate(bytes, category, options_.pool);
  const StorageId spare = *found;
  spare_.erase(found);
  return spare;
}

/// Inductor's wrapper keeps a buffer for the next tensor of its size where that does not raise the
/// peak it expects (torch/_inductor/codegen/wrapper.py, AllocateLine.should_reuse_buffer). Where
/// blocks are computed again that holds for all of them, from block to block.
void CompiledRun::drop(NodeId id) {
  StorageId& dropped = storage_[at(id)];
  const bool own = dropped != kExternal && storages_.of(dropped).slot >= 0;
  if (own && !kept_[at(id)] && (keeps_buffers() || waits(storages_.of(dropped).bytes)))
    spare_.push_back(dropped);
  else
    storages_.unref(dropped);
  dropped = kExternal;
}

}  // namespace
}  // namespace compiled

TapeRun run_compiled(const Model& model, const Segment& segment, const Regime& regime,
                     const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options) {
  TapeRun run;
  compiled::CompiledRun(model, segment, regime, sizes, input, mode, options, run).run();
  return run;
}

}  // namespace shardplan
