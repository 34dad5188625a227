#include "load/ds_config/version.h"

#include <fmt/format.h>

#include <charconv>

namespace shardplan {

std::optional<DeepSpeedVersion> parse_deepspeed_version(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  int numbers[3] = {0, 0, 0};
  int count = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (count < 3) {
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc() || numbers[count] < 0) {
      if (count < 2) return std::nullopt;
      break;
    }
    ++count;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (count < 2) return std::nullopt;
  return DeepSpeedVersion{numbers[0], numbers[1], numbers[2]};
}

std::string to_string(const DeepSpeedVersion& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace shardplan
