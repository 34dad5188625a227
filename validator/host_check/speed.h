// How fast the host's cores update, beside how fast they copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardplan::validator {

struct HostRate {
  std::string what;     ///< "copy", "AdamW, bf16-master"
  double bytes = 0;     ///< of one pass: what is read and what is written
  double elements = 0;  ///< of one pass
  double seconds = 0;   ///< the median pass
  double bytes_per_second() const { return bytes / seconds; }
};

struct HostSpeedOptions {
  std::int64_t elements = std::int64_t{1} << 28;
  int passes = 9;
};

struct HostSpeed {
  std::string cores;  ///< "AVX-512, 16 threads"
  std::vector<HostRate> rates;
};

/// Times copies, sums of two arrays (STREAM's triad) and updates of every precision.
HostSpeed measure_host_speed(const HostSpeedOptions& options);

}  // namespace shardplan::validator
