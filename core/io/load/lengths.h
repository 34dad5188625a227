// How long a job's samples are: a summary, or a file.
#pragma once

#include <optional>
#include <string>

#include "json/reader.h"
#include "plan/lengths.h"

namespace shardplan {

/// What `workload` says under "lengths"; none: all samples are as long as the sequence length. A
/// path is relative to `directory`. Throws InputError for another type, a summary that no
/// distribution has, and a file that cannot be read or has something else than a length a line.
std::optional<SampleLengths> read_lengths(ObjectReader& workload, const std::string& directory);

}  // namespace shardplan
