// Commands inside of a YAML that starts jobs: SkyPilot's "run", dstack's "commands", Kubernetes'
// "command" and "args".
#pragma once

#include <vector>

#include "import/document.h"

namespace shardplan::importing {

/// The programs with arguments in its texts, with the variables of "env" and "envs"; none where it
/// has none.
std::vector<Document> embedded_commands(const Document& yaml);

}  // namespace shardplan::importing
