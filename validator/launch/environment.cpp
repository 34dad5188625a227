#include "launch/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <numeric>

#include "base/diagnostic.h"

namespace shardplan::validator {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
  const char* nodes;  ///< how many hosts; nullptr: it does not say
};
constexpr std::array<Launcher, 3> kLaunchers{
    {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
     {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
     {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE",
      "SLURM_STEP_NUM_NODES"}}};

[[noreturn]] void refuse(const char* key, std::string message, std::string expected) {
  throw InputError({.file = "<environment>",
                    .key = key,
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

int number(const std::string& text, const char* name, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least)
    refuse(name, fmt::format("found '{}'", text), fmt::format("an integer from {} on", least));
  return value;
}

constexpr int kLastPort = 65535;

/// Ranks of this host, and which of them this is.
void read_local(const Launcher& l, const ReadVariable& read, Environment& e) {
  if (const auto local = read(l.local_rank)) e.local_rank = number(*local, l.local_rank, 0);
  const auto world = read(l.local_world);
  if (world) e.local_world = number(*world, l.local_world, 1);
  if (world && e.local_rank >= e.local_world)
    refuse(l.local_rank, fmt::format("local rank {} of {}", e.local_rank, e.local_world),
           fmt::format("less than {}", l.local_world));
  if (e.local_world > e.world)
    refuse(l.local_world, fmt::format("{} ranks on this host, {} in all", e.local_world, e.world),
           fmt::format("at most {}", l.world));
  // The ranks of a host are counted from one of its own.
  if (e.local_rank > e.rank)
    refuse(l.local_rank, fmt::format("rank {} is local rank {}", e.rank, e.local_rank),
           fmt::format("at most {}", l.rank));
  e.local_world = std::max(e.local_world, e.local_rank + 1);
}

/// Where rank 0 is.
void read_meeting_place(const Launcher& l, const ReadVariable& read, Environment& e) {
  e.address = read("MASTER_ADDR").value_or("");
  e.port = read_port(read("MASTER_PORT"));
  // torchrun's own store listens there; torch's ranks then connect to it.
  if (read("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True")
    e.port = e.port == kLastPort ? e.port - 1 : e.port + 1;
  const auto nodes = l.nodes != nullptr ? read(l.nodes) : std::nullopt;
  const bool elsewhere = nodes ? number(*nodes, l.nodes, 1) > 1
                               : read(l.local_world).has_value() && e.local_world < e.world;
  if (elsewhere && e.address.empty())
    refuse("MASTER_ADDR",
           fmt::format("{} started {} ranks on several hosts, and it is not set", l.name, e.world),
           "the name or address of rank 0's host");
}

}  // namespace

std::optional<Environment> read_environment(const ReadVariable& read) {
  for (const Launcher& l : kLaunchers) {
    const auto rank = read(l.rank), world = read(l.world);
    // A batch script of Slurm has a number of tasks without being one of them.
    if (rank && !world) refuse(l.world, fmt::format("{} is set and it is not", l.rank), "both");
    if (!rank && world && l.nodes == nullptr)
      refuse(l.rank, fmt::format("{} is set and it is not", l.world), "both");
    if (!rank || !world) continue;
    Environment e{.launcher = l.name};
    e.world = number(*world, l.world, 1);
    e.rank = number(*rank, l.rank, 0);
    if (e.rank >= e.world)
      refuse(l.rank, fmt::format("rank {} of {}", e.rank, e.world),
             fmt::format("less than {}", l.world));
    if (e.world == 1) return std::nullopt;
    read_local(l, read, e);
    read_meeting_place(l, read, e);
    e.process = e.rank;
    e.first_ranks.resize(static_cast<std::size_t>(e.world));
    std::iota(e.first_ranks.begin(), e.first_ranks.end(), 0);
    e.node = read("SLURMD_NODENAME").value_or(host_name());
    return e;
  }
  return std::nullopt;
}

int read_port(const std::optional<std::string>& text) {
  if (!text) return kDefaultPort;
  const int port = number(*text, "MASTER_PORT", 1);
  if (port > kLastPort)
    refuse("MASTER_PORT", fmt::format("found {}", port), fmt::format("at most {}", kLastPort));
  return port;
}

std::optional<std::string> process_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace shardplan::validator
