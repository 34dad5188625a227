#include "storage/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "storage/errors.h"
#include "storage/room.h"

namespace shardplan::validator {

OutputFile::OutputFile(const std::string& path, std::int64_t bytes) : path_(path), bytes_(bytes) {
  constexpr mode_t kEverybodyReads = 0666;  // less what the user's mask says
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kEverybodyReads);
  if (descriptor_ < 0) fail("cannot be made");
  try {
    reserve_room(descriptor_, std::filesystem::path(path).parent_path().string(), bytes_,
                 "a checkpoint");
  } catch (...) {
    close(descriptor_);
    unlink(path_.c_str());
    throw;
  }
}

OutputFile::~OutputFile() {
  if (mapping_ != nullptr) munmap(mapping_, static_cast<std::size_t>(bytes_));
  if (descriptor_ >= 0) close(descriptor_);
  if (!finished_) unlink(path_.c_str());
}

void OutputFile::fail(const char* what) const {
  throw StorageError(fmt::format("{}: {} ({})", path_, what, std::strerror(errno)));
}

void OutputFile::write(std::int64_t at, std::span<const std::byte> from) {
  while (!from.empty()) {
    const ssize_t written = pwrite(descriptor_, from.data(), from.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    from = from.subspan(static_cast<std::size_t>(written));
    at += written;
  }
}

std::span<std::byte> OutputFile::map() {
  if (mapping_ == nullptr) {
    void* const mapping = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE,
                               MAP_SHARED, descriptor_, 0);
    if (mapping == MAP_FAILED) fail("cannot be mapped");
    mapping_ = mapping;
  }
  return {static_cast<std::byte*>(mapping_), static_cast<std::size_t>(bytes_)};
}

void OutputFile::flush() {
  // Some file systems say only now that they are full.
  if (fsync(descriptor_) != 0) fail("cannot be written");
}

void OutputFile::finish() {
  flush();
  finished_ = true;
}

}  // namespace shardplan::validator
