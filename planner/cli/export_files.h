// Exports as files of a folder.
#pragma once

#include <string>

#include "export/export.h"

namespace shardplan::cli {

/// Writes every format that fits the job into `folder`, which is made if need be; says on stderr
/// what it wrote.
void write_exports(const std::string& folder, const Json& asked, const Job& job,
                   const Estimate& estimate);

}  // namespace shardplan::cli
