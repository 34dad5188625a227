// A plain list of machines: the same command is started once on each, which has all of its ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace shardplan::validator {

struct Host {
  std::string name;  ///< or an address
  int ranks = 0;
};

/// "node0,node1", "node0:4,node1:4", or a file with a line for each, "node0 slots=4" or "node0:4",
/// as Open MPI's hostfiles; '#' begins a comment. Hosts without a number have `each` ranks. Throws
/// InputError.
std::vector<Host> read_hosts(const std::string& text, int each);

/// Whether this machine has that name or address.
bool is_this_host(const std::string& host);

/// This machine's part. `node`: its name in the list; empty: the only one that `is_here`. Throws
/// InputError where that is none, or several.
Environment environment_of(const std::vector<Host>& hosts, const std::string& node, int port,
                           const std::function<bool(const std::string&)>& is_here = is_this_host);

}  // namespace shardplan::validator
