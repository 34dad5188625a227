// Names that keys of torchtitan had until the spring of 2025 (torchtitan/config_manager.py).
#pragma once

#include "import/document.h"

namespace shardplan::importing {

/// The configuration with the names of v0.2, each known by the place and the name it has in the
/// file. A file that has the names of v0.2 comes back as it is.
Document with_present_names(Document d);

}  // namespace shardplan::importing
