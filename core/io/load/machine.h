// A machine file (shardplan.machine/1): what `shardplan probe` measured of its host, what
// `shardplan anchor` learned from one of its steps, or both.
#pragma once

#include <optional>
#include <string>

#include "estimate/anchor.h"
#include "json/document.h"
#include "timing/measured_host.h"

namespace shardplan {

struct Machine {
  std::optional<MeasuredHost> host;
  std::optional<Anchor> anchor;
};

/// Throws InputError.
Machine load_machine(const std::string& path);

/// As load_machine reads it.
Json machine_json(const Machine& machine);

}  // namespace shardplan
