// The built-in hardware catalogue: data/hardware/*.json to HardwareCatalog.
#pragma once

#include "hardware/catalog.h"

namespace shardplan {

/// Parses the embedded files, at every call. A mistake in them throws InputError like any file's.
HardwareCatalog load_hardware_catalog();

}  // namespace shardplan
