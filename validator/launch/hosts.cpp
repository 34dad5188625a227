#include "launch/hosts.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "base/diagnostic.h"

namespace shardplan::validator {
namespace {

[[noreturn]] void refuse(std::string message, std::string expected) {
  throw InputError({.file = "<command line>",
                    .key = "--hosts",
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

int ranks_of(const std::string& text, const std::string& entry) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc{} || end != text.data() + text.size() || ranks < 1)
    refuse(fmt::format("found '{}'", entry), "a host and how many ranks it has: node0:4");
  return ranks;
}

/// "node0", "node0:4", "node0 slots=4"; others of Open MPI's words are passed over.
std::optional<Host> host_of(std::string entry, int each) {
  entry = entry.substr(0, entry.find('#'));
  std::istringstream words(entry);
  Host host{.name = "", .ranks = each};
  if (!(words >> host.name)) return std::nullopt;
  const std::size_t colon = host.name.find(':');
  if (colon != std::string::npos) {
    host.ranks = ranks_of(host.name.substr(colon + 1), entry);
    host.name.resize(colon);
  }
  for (std::string word; words >> word;)
    if (word.starts_with("slots=")) host.ranks = ranks_of(word.substr(6), entry);
  return host;
}

using Addresses = std::vector<in_addr_t>;  ///< IPv4, in network order

Addresses addresses_of(const std::string& host) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  Addresses found;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return found;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, freeaddrinfo);
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next)
    found.push_back(reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr.s_addr);
  return found;
}

Addresses addresses_here() {
  Addresses found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next)
    if (a->ifa_addr != nullptr && a->ifa_addr->sa_family == AF_INET)
      found.push_back(reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr.s_addr);
  return found;
}

std::size_t place_of(const std::vector<Host>& hosts, const std::string& node,
                     const std::function<bool(const std::string&)>& is_here) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (node.empty() ? is_here(hosts[i].name) : hosts[i].name == node) found.push_back(i);
  if (found.size() == 1) return found.front();
  const std::string who = node.empty() ? host_name() : node;
  if (found.empty())
    refuse(fmt::format("'{}' is not among the hosts", who), "a list with this host; or --node");
  refuse(
      fmt::format("'{}' and '{}' are both this host", hosts[found[0]].name, hosts[found[1]].name),
      "each host once; or --node");
}

}  // namespace

std::vector<Host> read_hosts(const std::string& text, int each) {
  std::vector<Host> hosts;
  const auto add = [&](const std::string& entry) {
    const auto host = host_of(entry, each);
    if (!host) return;
    const auto same = [&](const Host& h) { return h.name == host->name; };
    if (std::any_of(hosts.begin(), hosts.end(), same))
      refuse(fmt::format("'{}' is named twice", host->name), "each host once");
    hosts.push_back(*host);
  };
  std::error_code none;
  if (std::filesystem::is_regular_file(text, none)) {
    std::ifstream file(text);
    for (std::string line; std::getline(file, line);) add(line);
  } else {
    std::istringstream list(text);
    for (std::string entry; std::getline(list, entry, ',');) add(entry);
  }
  if (hosts.empty()) refuse(fmt::format("'{}' names no host", text), "node0,node1 or a file");
  return hosts;
}

bool is_this_host(const std::string& host) {
  const std::string here = host_name();
  if (host == here || host == here.substr(0, here.find('.'))) return true;
  const Addresses mine = addresses_here(), theirs = addresses_of(host);
  return std::any_of(theirs.begin(), theirs.end(), [&](in_addr_t a) {
    return std::find(mine.begin(), mine.end(), a) != mine.end();
  });
}

Environment environment_of(const std::vector<Host>& hosts, const std::string& node, int port,
                           const std::function<bool(const std::string&)>& is_here) {
  const std::size_t mine = place_of(hosts, node, is_here);
  Environment e{.launcher = "--hosts"};
  e.world = 0;
  for (const Host& host : hosts) {
    e.first_ranks.push_back(e.world);
    e.world += host.ranks;
  }
  e.process = static_cast<int>(mine);
  e.rank = e.first_ranks[mine];
  e.count = e.local_world = hosts[mine].ranks;
  e.address = hosts.front().name;
  e.port = port;
  e.node = hosts[mine].name;
  return e;
}

}  // namespace shardplan::validator
