// How this process was started: alone with all ranks, or as one rank of many by mpirun, srun or
// torchrun.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace shardplan::validator {

struct Environment {
  std::string launcher;  ///< "torchrun", "mpirun", "srun"
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;  ///< ranks of this host
  std::string address;  ///< of rank 0's host; empty: this host
  int port = 29500;
};

using ReadVariable = std::function<std::optional<std::string>(const char*)>;

/// nullopt: started by hand, or as the only rank. Throws InputError for variables that contradict
/// each other or are no numbers.
std::optional<Environment> read_environment(const ReadVariable& read);

/// The variables of this process.
std::optional<std::string> process_variable(const char* name);

}  // namespace shardplan::validator
