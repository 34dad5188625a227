#include <memory>

#include "cli/commands.h"

namespace shardplan::cli {
void add_catalog(CLI::App& app, Run& run) {
  static_cast<void>(app);
  static_cast<void>(run);
}
}  // namespace shardplan::cli
