// Whether a trainer's file says the whole plan: it is read as an import reads it.
#pragma once

#include "export/export.h"

namespace shardplan {

/// Throws InputError that names what the file leaves out of the plan, and what an import of it has
/// instead. What data, machine and environment decide is no trainer's to say.
void check_carried(const ExportedFile& file, const Json& asked, const Job& job);

}  // namespace shardplan
