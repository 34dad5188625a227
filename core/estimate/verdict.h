// Whether a job fits: what it needs of each resource beside what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hardware/cluster.h"
#include "program/program.h"

namespace shardplan {

/// A point estimate and bounds that a real run is not expected to pass.
struct Range {
  std::int64_t point = 0;
  std::int64_t upper = 0;
  std::int64_t least = point;
};

enum class Fit : std::uint8_t {
  fits,   ///< the upper bound is within what there is
  tight,  ///< the lower bound is, the upper bound is not
  does_not_fit,
  unknown,  ///< the capacity is not known
};
std::string_view name_of(Fit fit);

struct ResourceVerdict {
  Fit fit = Fit::unknown;
  std::int64_t needed = 0;  ///< point estimate
  std::optional<std::int64_t> available;
};

struct Verdict {
  ResourceVerdict gpu, host, nvme;
  bool fits = false;                ///< nothing that is known is worse than Fit::fits
  std::int64_t headroom_bytes = 0;  ///< of the GPU: usable minus the point estimate
  std::string_view limited_by;      ///< "gpu", "host", "nvme", or empty
};

/// Whether the job fits by its point estimates: nothing that is known runs out. A tight job may.
bool probably_fits(const Verdict& verdict);

/// `device`: bytes that the fullest GPU needs. `host`: bytes that a node's ranks need of it.
Verdict verdict_of(const Range& device, const HostMemory& host, const Cluster& cluster);

}  // namespace shardplan
