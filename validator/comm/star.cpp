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
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "base/diagnostic.h"
#include "device/errors.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAnyPort = 0;

timeval timeval_of(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_usec = std::chrono::microseconds(time - seconds).count()};
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

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

std::vector<int> counted(int world) {
  std::vector<int> names(static_cast<std::size_t>(world));
  std::iota(names.begin(), names.end(), 0);
  return names;
}

/// What a rank says of itself when it connects.
struct Hello {
  std::int32_t rank = 0, world = 0;
};

/// Where a rank listens: IPv4 in network order, as it is seen from rank 0.
struct Place {
  std::uint32_t address = 0;
  std::int32_t port = 0;
};

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
Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      peer_(other.peer_),
      silence_(other.silence_) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  peer_ = other.peer_;
  silence_ = other.silence_;
  return *this;
}

void Socket::configure(int peer, std::chrono::milliseconds silence) {
  peer_ = peer;
  silence_ = silence;
  const int on = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const timeval longest = timeval_of(silence);
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
}

void Socket::lost(bool silent) const {
  const std::string who = peer_ < 0 ? "another rank" : fmt::format("rank {}", peer_);
  if (silent)
    throw PeerFailure(fmt::format("{} did not come within {:.3g} s", who,
                                  std::chrono::duration<double>(silence_).count()),
                      peer_);
  throw PeerFailure(fmt::format("the connection to {} broke", who), peer_);
}

void Socket::send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lost(sent < 0 && errno == EAGAIN);
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void Socket::receive(std::span<std::byte> bytes) const {
  const Waiting waiting;
  while (!bytes.empty()) {
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lost(got < 0 && errno == EAGAIN);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void Socket::shut() const noexcept {
  if (descriptor_ >= 0) shutdown(descriptor_, SHUT_RDWR);
}

Listener::Listener(int port, int peers) : socket_(listen_on(port, peers)) {}

int Listener::port() const {
  sockaddr_in here{};
  socklen_t length = sizeof here;
  getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&here), &length);
  return ntohs(here.sin_port);
}

Star::Star(int rank, std::vector<int> names, Patience patience)
    : rank_(rank),
      world_(static_cast<int>(names.size())),
      names_(std::move(names)),
      patience_(patience) {}

Star::Star(const std::string& address, int port, int rank, int world, Patience patience)
    : Star(address, port, rank, counted(world), patience) {}

Star::Star(const std::string& address, int port, int rank, std::vector<int> names,
           Patience patience)
    : Star(rank, std::move(names), patience) {
  rank == 0 ? welcome(listen_on(port, world_)) : connect_to(address, port);
}

Star::Star(const Listener& listener, int world, Patience patience)
    : Star(0, counted(world), patience) {
  welcome(listener.socket());
}

std::unique_ptr<Star> Star::group(std::span<const int> members) const {
  const auto me = std::find(members.begin(), members.end(), rank_) - members.begin();
  const auto count = static_cast<int>(members.size());
  std::vector<int> names;
  for (const int member : members) names.push_back(names_[static_cast<std::size_t>(member)]);
  std::unique_ptr<Star> star(new Star(static_cast<int>(me), std::move(names), patience_));
  const bool hub = members.front() == rank_;
  const std::optional<Listener> listener =
      hub ? std::optional<Listener>(std::in_place, kAnyPort, count) : std::nullopt;
  const Place here{.port = hub ? listener->port() : 0};
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
    star->welcome(listener->socket());
  } else {
    star->connect_to(members.front() == 0 ? hub_ : text_of(first.address), first.port);
  }
  return star;
}

const Socket& Star::to(int rank) const {
  return sockets_[rank_ == 0 ? static_cast<std::size_t>(rank) : 0];
}

void Star::shut() const noexcept {
  for (const Socket& socket : sockets_) socket.shut();
}

void Star::welcome(const Socket& listener) {
  sockets_.resize(static_cast<std::size_t>(world_));
  const auto deadline = Clock::now() + patience_.start;
  while (!all_are_there()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    // Those that have come are watched too: one that ends meanwhile is not waited for.
    std::vector<pollfd> ready{{.fd = listener.descriptor(), .events = POLLIN, .revents = 0}};
    for (const Socket& s : sockets_)
      ready.push_back({.fd = s.descriptor(), .events = POLLRDHUP, .revents = 0});
    if (left <= 0 || poll(ready.data(), ready.size(), static_cast<int>(left)) <= 0)
      throw PeerFailure(fmt::format("{} of {} did not come within {:.3g} s", missing(), world_,
                                    std::chrono::duration<double>(patience_.start).count()));
    for (std::size_t r = 1; r < sockets_.size(); ++r)
      if (ready[r + 1].revents != 0)
        throw PeerFailure(
            fmt::format("rank {} ended before {} of {} came", names_[r], missing(), world_),
            names_[r]);
    if (ready[0].revents != 0)
      greet(Socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
}

void Star::greet(Socket peer) {
  peer.configure(-1, patience_.silence);
  Hello hello;
  peer.receive(std::as_writable_bytes(std::span(&hello, 1)));
  if (hello.world != world_)
    throw InputError(
        {.file = "<environment>",
         .key = "WORLD_SIZE",
         .message = fmt::format("rank {} was started as one of {}, rank 0 as one of {}", hello.rank,
                                hello.world, world_),
         .expected = "the same number everywhere"});
  const auto at = static_cast<std::size_t>(hello.rank);
  if (hello.rank < 1 || hello.rank >= world_ || sockets_[at].descriptor() >= 0)
    throw InputError(
        {.file = "<environment>",
         .key = "RANK",
         .message = fmt::format("two processes call themselves rank {} of {}", hello.rank, world_),
         .expected = "ranks from 0 on, each once"});
  peer.configure(names_[at], patience_.silence);
  sockets_[at] = std::move(peer);
}

bool Star::all_are_there() const {
  return std::all_of(sockets_.begin() + 1, sockets_.end(),
                     [](const Socket& s) { return s.descriptor() >= 0; });
}

std::string Star::missing() const {
  std::string text;
  for (std::size_t r = 1; r < sockets_.size(); ++r)
    if (sockets_[r].descriptor() < 0)
      text += fmt::format("{}rank {}", text.empty() ? "" : ", ", names_[r]);
  return text;
}

void Star::connect_to(const std::string& address, int port) {
  hub_ = address;
  const std::string host = address.empty() ? "127.0.0.1" : address;
  const auto deadline = Clock::now() + patience_.start;
  std::string why;
  while (Clock::now() < deadline) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    const int unknown = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    if (unknown != 0) why = gai_strerror(unknown);
    if (unknown == 0) {
      const std::unique_ptr<addrinfo, FreeAddresses> found(list);
      Socket hub(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
      hub.configure(names_[0], patience_.silence);  // also how long it tries to connect
      if (connect(hub.descriptor(), found->ai_addr, found->ai_addrlen) == 0) {
        const Hello hello{rank_, world_};
        hub.send(std::as_bytes(std::span(&hello, 1)));
        sockets_.push_back(std::move(hub));
        return;
      }
      why = std::strerror(errno);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw PeerFailure(fmt::format("rank {} did not find rank {} at {}:{} within {:.3g} s: {}",
                                names_[static_cast<std::size_t>(rank_)], names_[0], host, port,
                                std::chrono::duration<double>(patience_.start).count(), why),
                    names_[0]);
}

}  // namespace shardplan::validator
