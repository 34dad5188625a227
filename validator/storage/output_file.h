// A new file of a known size, which is there whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shardplan::validator {

class OutputFile {
 public:
  /// Makes the file, which must not be there, and takes all of its room. Throws StorageError, which
  /// names it, where its folder takes no file or has too little room.
  OutputFile(const std::string& path, std::int64_t bytes);
  /// Removes what was not finished.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws StorageError when the disk does not take it.
  void write(std::int64_t at, std::span<const std::byte> from);
  /// All of the file, to be written in any order.
  std::span<std::byte> map();
  /// Waits until what was written is on the disk. Throws StorageError.
  void flush();
  /// The file stays.
  void finish();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::int64_t bytes_;
  int descriptor_ = -1;
  void* mapping_ = nullptr;
  bool finished_ = false;
};

}  // namespace shardplan::validator
