// `shardplan report` on a folder or a sweep: one index page, one line of CSV a job.
#pragma once

#include <string>

#include "cli/output.h"

namespace shardplan::cli {

/// Whether a path is a folder or a sweep file.
bool is_batch(const std::string& path);

struct BatchArguments {
  std::string source, folder;
  std::string language, command;
  bool pages = false;
};

Exit report_batch(const BatchArguments& arguments);

}  // namespace shardplan::cli
