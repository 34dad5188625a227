// torch.compile with Inductor, as a job asks for it.
#pragma once

#include <cstdint>

namespace shardplan {

/// The mode of torch.compile (torch/_inductor/__init__.py, list_mode_options).
enum class CompileMode : std::uint8_t {
  usual,            ///< "default"
  reduce_overhead,  ///< CUDA graphs: fewer launches, a pool of memory of their own
  max_autotune,     ///< products timed as Triton kernels too, and CUDA graphs
};

/// What is one call of torch.compile.
enum class CompileScope : std::uint8_t { model, block };

struct Compile {
  CompileMode mode = CompileMode::usual;
  CompileScope scope = CompileScope::model;
};

}  // namespace shardplan
