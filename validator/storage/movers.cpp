#include "storage/movers.h"

#include <array>

#include "storage/mover_kinds.h"

namespace shardplan::validator {

std::span<const IoPathRow> io_paths() {
  static constexpr std::array kPaths{
      IoPathRow{IoPath::io_uring, "io_uring", true, make_uring},
      IoPathRow{IoPath::threads, "threads", true, make_threads},
      IoPathRow{IoPath::cufile, "cufile", false, make_cufile},
  };
  return kPaths;
}

}  // namespace shardplan::validator
