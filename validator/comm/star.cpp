#include "comm/star.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "device/errors.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSilenceSeconds = 25;  // of a peer that is still connected

[[noreturn]] void lost() {
  throw PeerFailure("another rank's process failed or stopped answering");
}

void configure(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const timeval patience{.tv_sec = kSilenceSeconds, .tv_usec = 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

constexpr int kAnyPort = 0;

Socket listen_on(int port, int ranks) {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_ANY);
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      listen(listener.descriptor(), ranks) != 0)
    throw PeerFailure(fmt::format("rank 0 cannot listen on port {}: {}; set MASTER_PORT", port,
                                  std::strerror(errno)));
  return listener;
}

/// Where a rank listens: IPv4 in network order, as it is seen from rank 0.
struct Place {
  std::uint32_t address = 0;
  std::int32_t port = 0;
};

std::int32_t port_of(const Socket& listener) {
  sockaddr_in here{};
  socklen_t length = sizeof here;
  getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&here), &length);
  return ntohs(here.sin_port);
}

std::uint32_t peer_of(const Socket& socket) {
  sockaddr_in there{};
  socklen_t length = sizeof there;
  getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&there), &length);
  return there.sin_addr.s_addr;
}

std::string text_of(std::uint32_t address) {
  const in_addr in{address};
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &in, text.data(), text.size());
  return text.data();
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lost();
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void Socket::receive(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lost();
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void Socket::shut() const noexcept {
  if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
}

Star::Star(const std::string& address, int port, int rank, int world, std::chrono::seconds patience)
    : rank_(rank), world_(world) {
  rank == 0 ? welcome(listen_on(port, world), patience) : connect_to(address, port, patience);
}

std::unique_ptr<Star> Star::group(std::span<const int> members) const {
  constexpr std::chrono::seconds kPatience(60);
  const auto me = std::find(members.begin(), members.end(), rank_) - members.begin();
  const auto count = static_cast<int>(members.size());
  std::unique_ptr<Star> star(new Star(static_cast<int>(me), count));
  const bool hub = members.front() == rank_;
  const Socket listener = hub ? listen_on(kAnyPort, count) : Socket();
  const Place here{.port = hub ? port_of(listener) : 0};
  // Everybody learns where the first of every group listens.
  std::vector<Place> places(static_cast<std::size_t>(world_));
  const auto all = std::as_writable_bytes(std::span(places));
  if (rank_ == 0) {
    places[0] = here;
    for (int r = 1; r < world_; ++r) {
      Place& place = places[static_cast<std::size_t>(r)];
      to(r).receive(std::as_writable_bytes(std::span(&place, 1)));
      place.address = peer_of(to(r));
    }
    for (int r = 1; r < world_; ++r) to(r).send(all);
  } else {
    to(0).send(std::as_bytes(std::span(&here, 1)));
    to(0).receive(all);
  }
  const Place& first = places[static_cast<std::size_t>(members.front())];
  if (hub) {
    star->welcome(listener, kPatience);
  } else {
    star->connect_to(members.front() == 0 ? hub_ : text_of(first.address), first.port, kPatience);
  }
  return star;
}

const Socket& Star::to(int rank) const {
  return sockets_[rank_ == 0 ? static_cast<std::size_t>(rank) : 0];
}

void Star::shut() const noexcept {
  for (const Socket& socket : sockets_) socket.shut();
}

void Star::welcome(const Socket& listener, std::chrono::seconds patience) {
  sockets_.resize(static_cast<std::size_t>(world_));
  const auto deadline = Clock::now() + patience;
  for (int missing = world_ - 1; missing > 0; --missing) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{.fd = listener.descriptor(), .events = POLLIN, .revents = 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0)
      throw PeerFailure(fmt::format("{} of {} ranks did not come within {} s", missing, world_,
                                    patience.count()));
    Socket peer(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    configure(peer.descriptor());
    std::int32_t rank = 0;
    peer.receive(std::as_writable_bytes(std::span(&rank, 1)));
    if (rank < 1 || rank >= world_ || sockets_[static_cast<std::size_t>(rank)].descriptor() >= 0)
      throw PeerFailure(fmt::format("a process called itself rank {} of {}", rank, world_));
    sockets_[static_cast<std::size_t>(rank)] = std::move(peer);
  }
}

void Star::connect_to(const std::string& address, int port, std::chrono::seconds patience) {
  hub_ = address;
  const std::string host = address.empty() ? "127.0.0.1" : address;
  const auto deadline = Clock::now() + patience;
  while (Clock::now() < deadline) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) == 0) {
      const std::unique_ptr<addrinfo, FreeAddresses> found(list);
      Socket hub(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
      if (connect(hub.descriptor(), found->ai_addr, found->ai_addrlen) == 0) {
        configure(hub.descriptor());
        const std::int32_t rank = rank_;
        hub.send(std::as_bytes(std::span(&rank, 1)));
        sockets_.push_back(std::move(hub));
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw PeerFailure(fmt::format("rank {} did not find rank 0 at {}:{} within {} s", rank_, host,
                                port, patience.count()));
}

}  // namespace shardplan::validator
