// Exports as files of a folder.
#pragma once

#include <string>
#include <vector>

#include "export/export.h"

namespace shardplan::cli {

/// Where exports go. Files that are there with other content are replaced only with `force`, or
/// when somebody at the terminal says so.
struct ExportFolder {
  std::string path;
  bool force = false;

  /// Writes all of the files or none; makes the folder if need be and says on standard error what
  /// it wrote. Throws InputError when a file may not be replaced or cannot be written.
  void write(const std::vector<ExportedFile>& files) const;
};

}  // namespace shardplan::cli
