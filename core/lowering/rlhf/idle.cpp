#include "lowering/rlhf/idle.h"

namespace shardplan {
namespace {

/// Whether an event stands for a state that a role has: neither workspace nor batch.
bool is_state(const Event& e) {
  return e.category != Category::workspace && e.category != Category::other;
}

bool is_optimizers(const Event& e) {
  return e.category == Category::optimizer_states || e.category == Category::master_parameters;
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
  std::int64_t moved = 0;
  for (const Event& e : states.resident) {
    if (!is_away(role, e) || (is_optimizers(e) && needed == Needed::parameters)) continue;
    const std::int64_t bytes = checked_mul(e.bytes, e.count);
    there ? b.alloc(e.category, bytes) : b.free(e.category, bytes);
    moved = checked_add(moved, bytes);
  }
  if (moved == 0) return;
  b.copy(LinkKind::host, there, moved, there ? "a model to the GPU" : "a model away");
  b.wait(Stream::copy);
}

}  // namespace shardplan
