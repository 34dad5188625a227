// What the native engine keeps on the host, copies there and back, and updates there
// (docs/explanation/validation.md, "Offload").
#pragma once

#include "frameworks/native/sizes.h"
#include "program/program.h"

namespace shardplan {

HostMemory native_host_memory(const Native& n);

/// Bounce buffers on the GPU that cuFile may take.
std::int64_t cufile_at_most(const Native& n);

/// What a unit is gathered from comes to the GPU. `read`: from the file; else it is in pinned
/// memory.
void emit_shard(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool read);
/// What the file is asked for next may have its room in pinned memory from here on.
void emit_turn(ProgramBuilder& b, const Native& n);

/// A unit is updated when the step first needs it, beside what the GPU still does, and comes back.
/// `read`: its parameters are in the file, and not in pinned memory.
void emit_update(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool read);
/// The rank's part of a unit's gradient leaves the GPU, and is added to what the step's `first`
/// micro-batch has left, if this is a later one.
void emit_departure(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool first, bool last);
/// A delayed update of the whole step before, beside the passes of this one.
void emit_delayed_update(ProgramBuilder& b, const Native& n);

}  // namespace shardplan
