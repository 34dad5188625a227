// The text of a cluster taken apart, before any name is looked up: counts, names, memory sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

inline constexpr std::string_view kClusterForms =
    "GPUs such as 4xA100-40GB, nodes of GPUs such as 2x8xH100, or an instance such as p4d.24xlarge";

/// More GPUs than any job has used; a larger product is a slip of the keyboard.
inline constexpr std::int64_t kMostGpus = 1'000'000;

/// Throws InputError with key "cluster".
[[noreturn]] void fail_cluster(std::string message, std::string expected = "",
                               std::string nearest = "");

struct ClusterText {
  std::vector<std::int64_t> counts;  ///< at most two, each from 1 to kMostGpus
  std::string name;                  ///< the rest: lower case, no spaces
};

/// "2 x 8 x H100" to {2, 8} and "h100". A count that is no whole number, zero, negative or too
/// large throws.
ClusterText split_cluster_text(std::string_view text);

struct MemoryName {
  std::int64_t gb = 0;
  bool has_unit = false;
};

/// "40gb" and "40"; nullopt for anything but digits and a unit.
std::optional<MemoryName> parse_memory_name(std::string_view name);

/// Lower case, without spaces and underscores, "×" and "*" as x. Hyphens stay: -4 is no count.
std::string compact_name(std::string_view text);

bool all_digits(std::string_view text);

}  // namespace shardplan
