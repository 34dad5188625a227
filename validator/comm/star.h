// Connections of every rank's process to rank 0's, over TCP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/patience.h"

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
  /// Messages are sent at once, and waited for no longer than `silence`; a failure names `peer`, a
  /// rank of the run.
  void configure(int peer, std::chrono::milliseconds silence);
  /// Both throw PeerFailure when the other side is gone or silent for too long.
  void send(std::span<const std::byte> bytes) const;
  void receive(std::span<std::byte> bytes) const;
  /// Makes both throw from now on, in whichever thread they wait.
  void shut() const noexcept;

 private:
  [[noreturn]] void lost(bool silent) const;

  int descriptor_ = -1;
  int peer_ = -1;
  std::chrono::milliseconds silence_{};
};

/// Where others connect to; open before they are told of it.
class Listener {
 public:
  /// Port 0: any that is free. Throws PeerFailure for one that is taken.
  Listener(int port, int peers);
  const Socket& socket() const { return socket_; }
  int port() const;

 private:
  Socket socket_;
};

class Star {
 public:
  /// Rank 0 listens on `port` and waits for the others, which look for it at `address`. Throws
  /// PeerFailure when they have not met in time, InputError when another rank counts other ranks.
  Star(const std::string& address, int port, int rank, int world, Patience patience = {});
  /// The same, of ranks that `names` calls otherwise, as a message has them.
  Star(const std::string& address, int port, int rank, std::vector<int> names,
       Patience patience = {});
  /// Rank 0's, on a port that is open.
  Star(const Listener& listener, int world, Patience patience = {});

  /// A star of those ranks of this one, in that order, around the first of them. Every rank calls
  /// it at the same time, with lists that share the ranks out.
  std::unique_ptr<Star> group(std::span<const int> members) const;

  int rank() const { return rank_; }
  int world() const { return world_; }
  /// Of rank 0: the way to `rank`. Of the others: the way to rank 0.
  const Socket& to(int rank) const;
  void shut() const noexcept;

 private:
  Star(int rank, std::vector<int> names, Patience patience);
  void welcome(const Socket& listener);
  void greet(Socket peer);
  bool all_are_there() const;
  std::string missing() const;
  void connect_to(const std::string& address, int port);

  int rank_, world_;
  std::vector<int> names_;  ///< of its ranks in the run
  Patience patience_;
  std::string hub_;              ///< where this rank found rank 0
  std::vector<Socket> sockets_;  ///< by rank at rank 0; one elsewhere
};

}  // namespace shardplan::validator
