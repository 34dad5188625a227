// shardplan-validate storage: how fast the disk of a folder reads and writes.
#pragma once

namespace shardplan::validator {

/// `argv[0]` is the command's name. The exit code; throws StorageError for a folder that does not
/// do.
int run_storage_command(int argc, char** argv);

}  // namespace shardplan::validator
