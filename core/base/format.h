// The one place where sizes become text. GiB and GB are never mixed: memory is GiB.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan {

/// "25.1 GiB", "512 MiB", "3.0 KiB", "17 B": three significant figures from 1 GiB on.
std::string format_bytes(std::int64_t bytes);

/// format_bytes with a sign: "+1.5 GiB".
std::string format_delta(std::int64_t bytes);

/// "6,738,415,616"
std::string format_count(std::int64_t count);

/// "6.74 B", "124 M": parameters in words.
std::string format_parameters(std::int64_t count);

/// "1.3 s", "85 ms"
std::string format_seconds(double seconds);

}  // namespace shardplan
