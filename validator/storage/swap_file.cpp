#include "storage/swap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/format.h"
#include "storage/options.h"

namespace shardplan::validator {
namespace {

constexpr auto kTmpfs = 0x01021994;  // linux/magic.h

[[noreturn]] void fail(const std::string& folder, std::int64_t bytes, const std::string& why) {
  throw StorageError(fmt::format("{}: {}; {} are needed there, {} are free", folder, why,
                                 format_bytes(bytes), format_bytes(free_bytes(folder))));
}

}  // namespace

std::int64_t free_bytes(const std::string& folder) {
  struct statvfs fs {};
  if (statvfs(folder.c_str(), &fs) != 0) return 0;
  return checked_mul(static_cast<std::int64_t>(fs.f_bavail),
                     static_cast<std::int64_t>(fs.f_frsize));
}

SwapFile::SwapFile(const std::string& folder, std::int64_t bytes, bool direct)
    : folder_(folder), bytes_(bytes) {
  open_unnamed();
  try {
    reserve();
    if (direct) go_direct();
  } catch (...) {
    close(descriptor_);
    throw;
  }
  struct statfs fs {};
  if (fstatfs(descriptor_, &fs) == 0 && fs.f_type == kTmpfs)
    description_ += " (tmpfs: in the host's memory)";
}

SwapFile::~SwapFile() {
  close(descriptor_);
}

void SwapFile::open_unnamed() {
  struct stat status {};
  if (stat(folder_.c_str(), &status) != 0)
    fail(folder_, bytes_, fmt::format("no folder for states ({})", std::strerror(errno)));
  if (!S_ISDIR(status.st_mode)) fail(folder_, bytes_, "not a folder");
  constexpr mode_t kOurs = S_IRUSR | S_IWUSR;
  descriptor_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOurs);
  if (descriptor_ >= 0) return;
  const bool no_such_files = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT;
  if (no_such_files) {  // a file system without unnamed files: the name goes at once
    std::string name = folder_ + "/shardplan-states-XXXXXX";
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ >= 0 && unlink(name.c_str()) == 0) return;
    if (descriptor_ >= 0) close(descriptor_);
  }
  fail(folder_, bytes_, fmt::format("no file can be made there ({})", std::strerror(errno)));
}

void SwapFile::reserve() {
  if (bytes_ == 0) return;
  // Beyond this limit the kernel does not refuse but ends the process.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<rlim_t>(bytes_) > limit.rlim_cur)
    fail(folder_, bytes_, "a file may not become as large (ulimit -f)");
  if (bytes_ > free_bytes(folder_)) fail(folder_, bytes_, "too little room for states");
  // Where the file system cannot reserve, glibc writes to each block, which is as good.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor_, 0, bytes_);
  if (error != 0)
    fail(folder_, bytes_, fmt::format("no room for states ({})", std::strerror(error)));
}

/// Some file systems take the flag and then refuse the first request.
void SwapFile::go_direct() {
  const int flags = fcntl(descriptor_, F_GETFL);
  const auto refused = [&](int error) {
    fcntl(descriptor_, F_SETFL, flags);
    description_ =
        fmt::format("through the page cache (direct I/O is refused: {})", std::strerror(error));
  };
  if (fcntl(descriptor_, F_SETFL, flags | O_DIRECT) != 0) return refused(errno);
  const std::unique_ptr<void, decltype(&std::free)> block(
      std::aligned_alloc(kStorageBlock, kStorageBlock), &std::free);
  if (bytes_ >= kStorageBlock && pread(descriptor_, block.get(), kStorageBlock, 0) < 0)
    return refused(errno);
  direct_ = true;
  description_ = "direct I/O";
}

}  // namespace shardplan::validator
