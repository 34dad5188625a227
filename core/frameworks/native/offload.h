// What the native engine keeps on the host, copies there and back, and updates there
// (docs/explanation/validation.md, "Offload").
#pragma once

#include "frameworks/native/sizes.h"
#include "program/program.h"

namespace shardplan {

HostMemory native_host_memory(const Native& n);

/// A unit is updated when the step first needs it, beside what the GPU still does, and comes back.
void emit_update(ProgramBuilder& b, const Native& n, const NativeUnit& u);
/// The rank's part of a unit's gradient leaves the GPU.
void emit_departure(ProgramBuilder& b, const Native& n, const NativeUnit& u, bool last);
/// A delayed update of the whole step before, beside the passes of this one.
void emit_delayed_update(ProgramBuilder& b, const Native& n);

}  // namespace shardplan
