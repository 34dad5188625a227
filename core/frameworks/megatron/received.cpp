#include "frameworks/megatron/received.h"

#include <utility>

#include "lowering/pipeline/schedule.h"

namespace shardplan {
namespace {

Event leaving(std::int64_t bytes, std::int32_t name) {
  Event e;
  e.kind = Event::Kind::free;
  e.category = Category::activations;
  e.bytes = bytes;
  e.name = name;
  return e;
}

}  // namespace

ReceivedTensors::ReceivedTensors(const ModelRun& run, const Stage& stage) {
  for (const StageChunk& chunk : stage.chunks)
    chunks_.push_back({input_bytes(run, chunk), output_bytes(run, chunk)});
}

void ReceivedTensors::forward_begins(std::int64_t chunk) {
  Chunk& c = chunks_[static_cast<std::size_t>(chunk)];
  if (std::exchange(c.began, true) || c.input == 0) return;
  for (const std::int32_t name : {detail::kReceivedName, detail::kGradientName}) {
    leaves_.push_back(leaving(c.input, name));
    leaves_.back().first_step = 2;
  }
}

void ReceivedTensors::enter(ProgramBuilder& b) {
  for (const Event& e : std::exchange(leaves_, {})) b.add(e);
}

void ReceivedTensors::forward_ends(ProgramBuilder& b) {
  drop_input(b);
}

void ReceivedTensors::backward_begins(ProgramBuilder& b) {
  drop_input(b);
  if (std::exchange(holds_output_gradient_, false))
    leaves_.push_back(leaving(chunks_.front().output, detail::kAwaitedName));
}

bool ReceivedTensors::keeps_gradient(ProgramBuilder& b) {
  if (chunks_.size() > 1) return false;
  if (std::exchange(holds_gradient_, true))
    b.free_older(Category::activations, chunks_.front().input, detail::kGradientName);
  return true;
}

void ReceivedTensors::backward_ends(ProgramBuilder& b) {
  if (chunks_.size() > 1) return;
  b.alloc_named(Category::activations, chunks_.front().input, detail::kReceivedName);
  b.alloc_named(Category::activations, chunks_.front().output, detail::kAwaitedName);
  holds_input_ = true;
  holds_output_gradient_ = chunks_.front().output > 0;
}

void ReceivedTensors::step_ends(ProgramBuilder& b) {
  if (std::exchange(holds_output_gradient_, false))
    b.add(leaving(chunks_.front().output, detail::kAwaitedName));
  for (const Chunk& c : chunks_) {
    if (chunks_.size() > 1) {
      b.alloc_named(Category::activations, c.input, detail::kReceivedName);
      b.alloc_named(Category::activations, c.input, detail::kGradientName);
    }
    b.resident(Category::activations, c.input, 2);
  }
}

void ReceivedTensors::drop_input(ProgramBuilder& b) {
  if (std::exchange(holds_input_, false))
    b.free_named(Category::activations, chunks_.front().input, detail::kReceivedName);
}

}  // namespace shardplan
