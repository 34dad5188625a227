// A block of the host's memory for states that are kept there, and how much the host still has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shardplan::validator {

/// Pages of this process alone, huge ones where the kernel has them. Nobody has written to them: a
/// page comes to lie at the NUMA node of who writes first.
class HostPages {
 public:
  /// Throws OutOfMemory, which names `what`, when the kernel refuses.
  HostPages(std::int64_t bytes, std::string_view what);
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  /// Aligned to 2 MiB.
  std::uintptr_t address() const { return address_; }
  std::int64_t bytes() const { return bytes_; }
  std::span<std::byte> span() const {
    return {reinterpret_cast<std::byte*>(address_), static_cast<std::size_t>(bytes_)};
  }

 private:
  std::int64_t bytes_ = 0, mapped_ = 0;
  std::uintptr_t mapping_ = 0, address_ = 0;
};

/// Bytes that processes can still get: what the kernel calls available, and what the control groups
/// that this process is in leave of their limits. The kernel ends a process that takes more.
std::int64_t host_bytes_available();

/// Bytes of this process that lie in memory now.
std::int64_t host_bytes_resident();

}  // namespace shardplan::validator
