#include "json/text_position.h"

#include <algorithm>

namespace shardplan {

TextPosition position_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t last = before.rfind('\n');
  const std::size_t start = last == std::string_view::npos ? 0 : last + 1;
  return {static_cast<int>(lines) + 1, static_cast<int>(before.size() - start) + 1};
}

}  // namespace shardplan
