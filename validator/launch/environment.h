// How this process was started: alone with all ranks, as one rank of many by mpirun, srun or
// torchrun, or once on each machine of a list.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardplan::validator {

inline constexpr int kDefaultPort = 29500;

struct Environment {
  std::string launcher;  ///< "torchrun", "mpirun", "srun", "--hosts"
  int rank = 0;          ///< the first of this process
  int count = 1;         ///< ranks of this process
  int world = 1;
  int local_rank = 0;
  int local_world = 1;           ///< ranks of this host
  int process = 0;               ///< this one's place
  std::vector<int> first_ranks;  ///< of each process
  std::string address;           ///< of rank 0's host; empty: this host
  int port = kDefaultPort;
  std::string node;  ///< the name of this host
};

using ReadVariable = std::function<std::optional<std::string>(const char*)>;

/// nullopt: started by hand, or as the only rank. Throws InputError for variables that contradict
/// each other, are no numbers or are missing.
std::optional<Environment> read_environment(const ReadVariable& read);

/// MASTER_PORT's, or the default of launchers. Throws InputError.
int read_port(const std::optional<std::string>& text);

/// The variables of this process.
std::optional<std::string> process_variable(const char* name);

/// As uname has it.
std::string host_name();

}  // namespace shardplan::validator
