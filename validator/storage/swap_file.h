// A file without a name: nothing of it is left when the process ends, however it ends.
#pragma once

#include <cstdint>
#include <string>

#include "storage/errors.h"

namespace shardplan::validator {

class SwapFile {
 public:
  /// Takes all of its `bytes` of the disk at once. Throws StorageError, which names the folder and
  /// what is needed and free, where the folder is missing, cannot be written to or is full.
  SwapFile(const std::string& folder, std::int64_t bytes, bool direct);
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }
  const std::string& folder() const { return folder_; }
  bool direct() const { return direct_; }
  /// "direct I/O", or "through the page cache (tmpfs: in memory)".
  const std::string& description() const { return description_; }

 private:
  void open_unnamed();
  void go_direct();

  std::string folder_;
  std::int64_t bytes_;
  int descriptor_ = -1;
  bool direct_ = false;
  std::string description_ = "through the page cache";
};

}  // namespace shardplan::validator
