#include "lowering/rlhf/idle.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "trainers/description.h"

namespace shardplan {
namespace {

/// Whether an event stands for a state that a role has: neither workspace nor batch.
bool is_state(const Event& e) {
  return e.category != Category::workspace && e.category != Category::other;
}

bool is_optimizers(const Event& e) {
  return e.category == Category::optimizer_states || e.category == Category::master_parameters;
}

/// Tensor by tensor, neighbours of equal count layer by layer: a block each.
void add_blocks(ProgramBuilder& b, const std::vector<Event>& tensors, bool there) {
  for (auto from = tensors.begin(); from != tensors.end();) {
    const auto to =
        std::find_if(from, tensors.end(), [&](const Event& e) { return e.count != from->count; });
    b.begin_repeat(from->count);
    for (; from != to; ++from)
      there ? b.alloc(from->category, from->bytes) : b.free(from->category, from->bytes);
    b.end_repeat();
  }
}

}  // namespace

std::string_view name_of(Idle idle) {
  switch (idle) {
    case Idle::gpu:
      return "gpu";
    case Idle::parameters:
      return "parameters";
    case Idle::optimizer:
      return "optimizer";
    case Idle::host:
      return "host";
  }
  return "";
}

bool is_away(const Role& role, const Event& e) {
  if (!is_state(e) || role.idle == Idle::gpu) return false;
  return role.idle == Idle::host || (role.idle == Idle::optimizer) == is_optimizers(e);
}

std::int64_t state_bytes(const Program& program) {
  std::int64_t sum = 0;
  for (const Event& e : program.resident)
    if (is_state(e)) sum = checked_add(sum, checked_mul(e.bytes, e.count));
  return sum;
}

bool brings_states(const RlhfPart& part) {
  return part.role->trains != part.scores;
}

void bring(ProgramBuilder& b, const Program& states, const Role& role, Needed needed, bool there) {
  const auto moves = [&](const Event& e) {
    return is_away(role, e) && !(is_optimizers(e) && needed == Needed::parameters);
  };
  std::vector<Event> moving;
  std::ranges::copy_if(states.resident, std::back_inserter(moving), moves);
  const std::int64_t moved = total_bytes(moving);
  if (moved == 0) return;
  add_blocks(b, moving, there);
  if (!there && role.plan.trainer->empties_cache.when_parameters_leave) b.empty_cache();
  b.copy(LinkKind::host, there, moved, there ? "a model to the GPU" : "a model away");
  b.wait(Stream::copy);
}

}  // namespace shardplan
