#include "frameworks/native/kept_on_host.h"

#include <algorithm>

#include "lowering/saved_on_host.h"

namespace shardplan {
namespace {

/// Blocks of which it leaves the GPU: all but the last ones, whose places nothing else takes.
std::int64_t leaving(const Native& n) {
  return n.sends_kept ? n.blocks_of_chunk() - n.places() : 0;
}

TapeEvent copy(TapeEvent::Kind direction, std::int64_t bytes) {
  return {.kind = direction, .id = static_cast<std::int32_t>(CopyWait::nobody), .bytes = bytes};
}

}  // namespace

KeptTurn kept_turn(const Native& n, KeptPass pass, std::int64_t turn) {
  KeptTurn kept;
  if (leaving(n) == 0) return kept;
  const bool later = turn >= Native::kPlaces;
  if (pass == KeptPass::backward) {
    kept.vacates = turn > 0;
    kept.comes = later;
    return kept;
  }
  kept.leaves = turn < leaving(n);
  kept.waits = later;
  if (later && turn <= leaving(n)) kept.but_last = n.kept();
  return kept;
}

void emit_before(ProgramBuilder& b, const Native& n, const KeptTurn& turn) {
  if (turn.waits)
    detail::emit_copy(b, {.kind = TapeEvent::Kind::wait_for_copies, .bytes = turn.but_last});
  if (turn.comes) detail::emit_copy(b, copy(TapeEvent::Kind::to_gpu, n.kept()));
  // What comes next has its place from here on: the next turn asks for it.
  if (turn.vacates) detail::emit_copy(b, {.kind = TapeEvent::Kind::copies_follow});
}

void emit_after(ProgramBuilder& b, const Native& n, const KeptTurn& turn) {
  if (turn.leaves) detail::emit_copy(b, copy(TapeEvent::Kind::to_host, n.kept()));
}

std::int64_t kept_on_host(const Native& n) {
  return n.layout.decoder ? checked_mul(leaving(n), n.kept()) : 0;
}

}  // namespace shardplan
