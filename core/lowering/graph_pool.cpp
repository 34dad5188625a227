#include "lowering/graph_pool.h"

#include <algorithm>

#include "lowering/library_workspaces.h"

namespace shardplan {
namespace {

bool is_block(const Event& e) {
  return e.kind == Event::Kind::alloc || e.kind == Event::Kind::free;
}

/// Recording needs a little more than the first step made: what does not fit lands in the largest
/// free block, whose tensor then needs another one (an allocator's history of Llama 3.2 1B with
/// adapters and checkpoints).
std::int64_t largest_in_pool(const Program& program) {
  std::int64_t most = 0;
  for (const Event& e : program.blocks)
    if (is_block(e) && e.stream == Stream::graphs) most = std::max(most, e.bytes);
  return most;
}

}  // namespace

void move_to_graph_pool(Program& program, const Gpu& gpu, const ModelRun& run) {
  program.replays_graphs = true;
  Event workspace;
  workspace.category = Category::workspace;
  workspace.bytes = cublas_workspace(gpu);
  workspace.stream = workspace.used_on = Stream::graphs;
  program.resident.push_back(workspace);
  if (run.held_over == 0) return;
  Event held;
  held.category = Category::activations;
  held.bytes = run.held_over;
  held.name = detail::kHeldOverName;
  program.resident.push_back(held);
  program.held_at_most += largest_in_pool(program);
}

Program without_graph_pool(const Program& program) {
  Program rest = program;
  const auto leave_out = [](std::vector<Event>& events) {
    for (Event& e : events)
      if (is_block(e) && e.stream == Stream::graphs) e.bytes = 0;
  };
  leave_out(rest.events);
  leave_out(rest.blocks);
  for (Event& e : rest.resident)
    if (e.category == Category::workspace) e.bytes = 0;
  return rest;
}

}  // namespace shardplan
