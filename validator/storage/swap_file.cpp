#include "storage/swap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "storage/options.h"
#include "storage/room.h"

namespace shardplan::validator {
namespace {

constexpr auto kTmpfs = 0x01021994;  // linux/magic.h

}  // namespace

SwapFile::SwapFile(const std::string& folder, std::int64_t bytes, bool direct)
    : folder_(folder), bytes_(bytes) {
  open_unnamed();
  try {
    reserve_room(descriptor_, folder_, bytes_, "the swap file");
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
    refuse_room(folder_, bytes_,
                fmt::format("no folder for the swap file ({})", std::strerror(errno)));
  if (!S_ISDIR(status.st_mode)) refuse_room(folder_, bytes_, "not a folder");
  constexpr mode_t kOurs = S_IRUSR | S_IWUSR;
  descriptor_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOurs);
  if (descriptor_ >= 0) return;
  const bool no_such_files = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT;
  if (no_such_files) {  // a file system without unnamed files: the name goes at once
    std::string name = folder_ + "/shardplan-swap-XXXXXX";
    descriptor_ = mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ >= 0 && unlink(name.c_str()) == 0) return;
    if (descriptor_ >= 0) close(descriptor_);
  }
  refuse_room(folder_, bytes_, fmt::format("no file can be made there ({})", std::strerror(errno)));
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
