#include "storage/room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>

#include "base/checked.h"
#include "base/format.h"
#include "storage/errors.h"

namespace shardplan::validator {

std::int64_t free_bytes(const std::string& folder) {
  struct statvfs fs {};
  if (statvfs(folder.c_str(), &fs) != 0) return 0;
  return checked_mul(static_cast<std::int64_t>(fs.f_bavail),
                     static_cast<std::int64_t>(fs.f_frsize));
}

void refuse_room(const std::string& folder, std::int64_t bytes, const std::string& why) {
  throw StorageError(fmt::format("{}: {}; {} are needed there, {} are free", folder, why,
                                 format_bytes(bytes), format_bytes(free_bytes(folder))));
}

void reserve_room(int descriptor, const std::string& folder, std::int64_t bytes,
                  const std::string& what) {
  if (bytes == 0) return;
  // Beyond this limit the kernel does not refuse but ends the process.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && static_cast<rlim_t>(bytes) > limit.rlim_cur)
    refuse_room(folder, bytes, "a file may not become as large (ulimit -f)");
  if (bytes > free_bytes(folder)) refuse_room(folder, bytes, "too little room for " + what);
  // Where the file system cannot reserve, glibc writes to each block, which is as good.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor, 0, bytes);
  // Another rank may have taken what was free a moment ago.
  if (error == ENOSPC) refuse_room(folder, bytes, "too little room for " + what);
  if (error != 0)
    refuse_room(folder, bytes, fmt::format("no room for {} ({})", what, std::strerror(error)));
}

}  // namespace shardplan::validator
