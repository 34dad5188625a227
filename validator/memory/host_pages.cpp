#include "memory/host_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "base/checked.h"
#include "base/format.h"
#include "memory/arena.h"

namespace shardplan::validator {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::optional<std::int64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  if (!(file >> value)) return std::nullopt;  // no file, or "max"
  return value;
}

/// The number behind `key` in lines of "key number" or "key: number kB", in the file's unit.
std::optional<std::int64_t> number_of(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  std::int64_t value = 0;
  while (file >> word) {
    if (word == key && file >> value) return value;
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// What a control group calls its limit, what it uses, and caches of files in memory.stat.
struct GroupFiles {
  const char *most, *used, *cache;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

/// What the control group in `folder` leaves; caches of files give way.
std::int64_t left_in_group(const std::filesystem::path& folder, const GroupFiles& files) {
  const auto most = number_in(folder / files.most);
  const auto used = number_in(folder / files.used);
  if (!most || !used) return kNoLimit;
  const std::int64_t cache = number_of(folder / "memory.stat", files.cache).value_or(0);
  return std::max<std::int64_t>(0, *most - *used + cache);
}

}  // namespace

HostPages::HostPages(std::int64_t bytes, std::string_view what) : bytes_(bytes) {
  if (bytes == 0) return;
  mapped_ = checked_add(round_up(bytes, kHugePage), kHugePage);
  void* const mapping = mmap(nullptr, static_cast<std::size_t>(mapped_), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw OutOfMemory(fmt::format("out of memory: the host has no {} for {}: {}",
                                  format_bytes(bytes), what, std::strerror(errno)));
  mapping_ = reinterpret_cast<std::uintptr_t>(mapping);
  const auto unit = static_cast<std::uintptr_t>(kHugePage);
  address_ = (mapping_ + unit - 1) / unit * unit;
  // Refused where the kernel is built without: small pages do too.
  madvise(reinterpret_cast<void*>(address_), static_cast<std::size_t>(round_up(bytes, kHugePage)),
          MADV_HUGEPAGE);
}

HostPages::~HostPages() {
  if (mapped_ > 0) munmap(reinterpret_cast<void*>(mapping_), static_cast<std::size_t>(mapped_));
}

std::int64_t host_bytes_available() {
  constexpr std::int64_t kKilo = 1024;
  std::int64_t left = kNoLimit;
  if (const auto kilo = number_of("/proc/meminfo", "MemAvailable:")) left = *kilo * kKilo;
  const std::filesystem::path root = "/sys/fs/cgroup";
  left = std::min(left, left_in_group(root / "memory", kVersion1));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;  // the one hierarchy of version 2
    for (std::filesystem::path group = line.substr(std::strlen("0::/"));;
         group = group.parent_path()) {
      left = std::min(left, left_in_group(root / group, kVersion2));
      if (group.empty()) break;
    }
  }
  return left;
}

std::int64_t host_bytes_resident() {
  std::ifstream file("/proc/self/statm");  // pages: size, resident, ...
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace shardplan::validator
