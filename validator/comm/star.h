// Connections of every rank's process to rank 0's, over TCP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shardplan::validator {

/// An open socket; closed at the end of its life.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  /// Both throw PeerFailure when the other side is gone or silent for too long.
  void send(std::span<const std::byte> bytes) const;
  void receive(std::span<std::byte> bytes) const;
  /// Makes both throw from now on, in whichever thread they wait.
  void shut() const noexcept;

 private:
  int descriptor_ = -1;
};

class Star {
 public:
  /// Rank 0 listens on `port` and waits for the others, which look for it at `address`. Throws
  /// PeerFailure when they have not met after `patience`.
  Star(const std::string& address, int port, int rank, int world,
       std::chrono::seconds patience = std::chrono::seconds(60));

  /// A star of those ranks of this one, in that order, around the first of them. Every rank calls
  /// it at the same time, with lists that share the ranks out.
  std::unique_ptr<Star> group(std::span<const int> members) const;

  int rank() const { return rank_; }
  int world() const { return world_; }
  /// Of rank 0: the way to `rank`. Of the others: the way to rank 0.
  const Socket& to(int rank) const;
  void shut() const noexcept;

 private:
  Star(int rank, int world) : rank_(rank), world_(world) {}
  void welcome(const Socket& listener, std::chrono::seconds patience);
  void connect_to(const std::string& address, int port, std::chrono::seconds patience);

  int rank_, world_;
  std::string hub_;              ///< where this rank found rank 0
  std::vector<Socket> sockets_;  ///< by rank at rank 0; one elsewhere
};

}  // namespace shardplan::validator
