// Where states and parameters are kept that are not in memory, and how they are moved.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan::validator {

/// Direct I/O wants offsets, sizes and addresses to be multiples of a disk's block: 4096 bytes are
/// one for every disk with blocks of 512 or 4096.
inline constexpr std::int64_t kStorageBlock = 4096;

enum class IoPath : std::uint8_t {
  automatic,  ///< io_uring where it is, else threads
  io_uring,   ///< or an error
  threads,    ///< pread and pwrite, as many threads as the queue is deep
  cufile,     ///< NVIDIA's GPUDirect Storage: between the file and a device's memory
};

struct StorageOptions {
  std::string folder;
  std::int64_t chunk_bytes = std::int64_t{1} << 20;  ///< of a request; a multiple of kStorageBlock
  int queue_depth = 32;                              ///< requests that are on their way at once
  IoPath path = IoPath::automatic;
  bool direct = true;  ///< past the kernel's page cache, where the file system can
  std::string cufile;  ///< libcufile.so; empty: as the loader finds it
};

}  // namespace shardplan::validator
