// One segment as torch.compile runs it, written as a tape: the walk over what is traced, pass by
// pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "program/compiled/buffer_plan.h"
#include "program/compiled/cuts.h"
#include "program/compiled/made_ahead.h"
#include "program/compiled/module_hooks.h"
#include "program/compiled/partition.h"
#include "program/compiled/trace.h"
#include "program/compiled/trials.h"
#include "program/compiled/units.h"
#include "program/tape/storages.h"
#include "program/tape/writer.h"

namespace shardplan::compiled {

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
               options.module_hooks ? parts_of(options) : std::vector<std::int32_t>{}) {
    if (options.checkpointed != nullptr && mode == TapeMode::keep)
      chain_ = chain_in_front(model, regime, sizes, input);
  }

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
  ChainInFront chain_in_front(const Model& model, const Regime& regime, const Sizes& sizes,
                              DType input);
  void begin_pass();
  void forward();
  void keep_tables();
  void keep_shared();
  void keep_output_alone();
  void copy_returned();
  void backward();
  void begin_backward();
  void unpack_arguments();
  void end_backward();
  void run_pass();
  std::vector<Unit> with_next_block(std::vector<Unit> units);
  std::vector<std::vector<NodeId>> hold_arguments(const std::vector<Unit>& units,
                                                  std::vector<std::size_t>& last);
  bool is_eager_kernel(const Unit& unit) const {
    return unit.part == kNone && node(unit.writes.front()).kind == NodeKind::kernel;
  }
  void run_unit(const Unit& unit, std::vector<NodeId> dying);
  /// What is traced becomes CUDA graphs, which have a pool of their own.
  bool records() const { return options_.pool == Stream::graphs; }
  /// A block is computed again, but for what has no tag.
  bool computes_again() const {
    return mode_ == TapeMode::redo || options_.kept == KeptResults::untagged;
  }
  /// In the graph of the blocks beside it, which are like it.
  bool plans_buffers() const { return computes_again() && options_.blocks_alike; }
  /// Beside blocks of others: all its buffers wait for those.
  bool keeps_buffers() const { return in_backward_ && computes_again() && !options_.blocks_alike; }
  /// Whether each tensor's place is followed as the scheduler gives it. Of such blocks and of casts
  /// to fp8 the order is not followed: they are counted by what their replays hold
  /// (tests/accuracy/compiled_replay_test.cpp).
  bool follows_places() const {
    return !keeps_buffers() && view_.regime().linear == LinearRecipe::computed;
  }
  /// The block in front is computed again first: the last kernel of what follows is part of one of
  /// its own, until which its operand is there and its result is not.
  bool made_behind(NodeId id) const { return options_.input_again && id == trace_.input_gradient; }
  void plan(const std::vector<Unit>& units, const std::vector<std::size_t>& last);
  void leave_waiting();
  /// A block's buffer waits for the next block's: the expected peak does not rise.
  bool waits(std::int64_t bytes) const {
    const bool block = !options_.last_segment && trace_.input != kNone && !options_.graph_parts;
    return keeps_buffers() ||
           (in_backward_ && block && bytes + working_set_ <= options_.believed_room);
  }
  void return_gradients();
  void note_operands(const Unit& unit, const std::vector<NodeId>& dying);
  bool lies_over(const Made& made, NodeId read) const;
  bool may_take(const Unit& unit, const Made& made, NodeId over) const;
  NodeId written_over(const Unit& unit, const Made& made, const std::vector<NodeId>& dying) const;
  void write_in_place(const Unit& unit, std::vector<NodeId>& dying);
  void take_place(NodeId made, NodeId over);
  void hand_over(const Unit& unit);
  void read_again(const Unit& unit);
  void write_over(const Unit& unit, std::vector<NodeId>& dying);
  tape::KernelList issued(tape::KernelList list, const Unit& unit);
  void store(NodeId id);
  StorageId take(NodeId id);
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
  BufferPlan plan_;                ///< of a block that is computed again
  std::map<LeftBuffer, StorageId> waiting_;
  std::vector<TapeEvent> returned_;  ///< gradients of the graph that runs, for return_gradients()
  Pass pass_;
  ChainInFront chain_;
  bool in_backward_ = false;
  std::int32_t first_slot_ = 0;     ///< of what the pass itself has allocated
  std::int64_t working_set_ = 0;    ///< of the pass, where no buffer waits
  std::int32_t open_part_ = kNone;  ///< the graph that is being called
  ModuleHooks hooks_;
};

}  // namespace shardplan::compiled
