// The room of a file on its disk, taken before anything is written.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan::validator {

/// Bytes that a folder's disk still has for us; 0: nobody knows.
std::int64_t free_bytes(const std::string& folder);

/// Throws StorageError: the folder, why, how much is needed there and how much is free.
[[noreturn]] void refuse_room(const std::string& folder, std::int64_t bytes,
                              const std::string& why);

/// Makes an open file of `folder` as large as that, so that writing to it finds room. `what`: "the
/// swap file". Throws StorageError where the disk or a limit of the process refuses.
void reserve_room(int descriptor, const std::string& folder, std::int64_t bytes,
                  const std::string& what);

}  // namespace shardplan::validator
