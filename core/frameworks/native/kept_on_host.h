// The way of what blocks keep to the host and back (docs/explanation/validation.md, "Offload").
#pragma once

#include <cstdint>

#include "frameworks/native/sizes.h"
#include "program/program.h"

namespace shardplan {

enum class KeptPass : std::uint8_t { forward, backward };

/// What a block's turn does beside its work: nothing where what is kept stays.
struct KeptTurn {
  bool leaves = false;   ///< forward: the block's way to the host follows its work
  bool comes = false;    ///< backward: and back, which its work waits for
  bool vacates = false;  ///< backward: the turn before has left a place to what comes next
  bool waits = false;    ///< forward: what lay in its place is to have left
  /// Bytes of a copy after that, which it does not wait for.
  std::int64_t but_last = 0;
  bool operator==(const KeptTurn&) const = default;
};

/// Of a pass's `turn`-th block, in the order of the pass.
KeptTurn kept_turn(const Native& n, KeptPass pass, std::int64_t turn);

void emit_before(ProgramBuilder& b, const Native& n, const KeptTurn& turn);
void emit_after(ProgramBuilder& b, const Native& n, const KeptTurn& turn);

/// Pinned bytes of the host for it.
std::int64_t kept_on_host(const Native& n);

}  // namespace shardplan
