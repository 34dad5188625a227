#include "base/said.h"

namespace shardplan::detail {

std::vector<std::string_view> fields_of(std::string_view pattern) {
  std::vector<std::string_view> fields;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{' && pattern[i] != '}') continue;
    if (i + 1 < pattern.size() && pattern[i + 1] == pattern[i]) {
      ++i;
      continue;
    }
    const std::size_t close = pattern.find('}', i);
    fields.push_back(pattern.substr(i, close - i + 1));
    i = close;
  }
  return fields;
}

}  // namespace shardplan::detail
