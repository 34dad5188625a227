#include "estimate/too_large.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardplan {

InputError too_large(const Workload& w) {
  std::vector<std::pair<std::int64_t, std::string_view>> numbers;
  if (w.kind == WorkKind::inference) {
    numbers = {{w.sequence_length, "workload.prompt_length"},
               {w.generation.new_tokens, "workload.new_tokens"},
               {w.micro_batch, "workload.batch"}};
  } else {
    numbers = {{w.sequence_length, "workload.sequence_length"},
               {w.micro_batch, "workload.micro_batch"},
               {w.gradient_accumulation, "workload.gradient_accumulation"}};
  }
  const auto& [most, key] =
      *std::max_element(numbers.begin(), numbers.end(),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return InputError({.key = std::string(key),
                     .message = fmt::format("{} is too large: a size of the job does not fit in "
                                            "64 bits",
                                            most),
                     .expected = "a smaller number"});
}

}  // namespace shardplan
