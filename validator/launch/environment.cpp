#include "launch/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/diagnostic.h"

namespace shardplan::validator {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};
constexpr std::array<Launcher, 3> kLaunchers{
    {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
     {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}}};

int number(const std::string& text, const char* name, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least)
    throw InputError({.file = "<environment>",
                      .key = name,
                      .message = fmt::format("found '{}'", text),
                      .expected = fmt::format("an integer from {} on", least)});
  return value;
}

}  // namespace

std::optional<Environment> read_environment(const ReadVariable& read) {
  for (const Launcher& l : kLaunchers) {
    const auto rank = read(l.rank), world = read(l.world);
    if (!rank || !world) continue;
    Environment e{.launcher = l.name};
    e.world = number(*world, l.world, 1);
    e.rank = number(*rank, l.rank, 0);
    if (e.rank >= e.world)
      throw InputError({.file = "<environment>",
                        .key = l.rank,
                        .message = fmt::format("rank {} of {}", e.rank, e.world),
                        .expected = fmt::format("less than {}", l.world)});
    if (e.world == 1) return std::nullopt;
    if (const auto local = read(l.local_rank)) e.local_rank = number(*local, l.local_rank, 0);
    if (const auto local = read(l.local_world)) e.local_world = number(*local, l.local_world, 1);
    e.local_world = std::max(e.local_world, e.local_rank + 1);
    e.address = read("MASTER_ADDR").value_or("");
    if (const auto port = read("MASTER_PORT")) e.port = number(*port, "MASTER_PORT", 1);
    return e;
  }
  return std::nullopt;
}

std::optional<std::string> process_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace shardplan::validator
