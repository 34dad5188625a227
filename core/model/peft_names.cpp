#include "model/peft_names.h"

#include <algorithm>

namespace shardplan {

std::optional<std::size_t> saved_module(const std::vector<std::string>& saved, bool classifies,
                                        std::string_view tensor) {
  if (saved.empty() && !classifies) return std::nullopt;
  for (std::size_t end = tensor.find('.'); end != tensor.npos; end = tensor.find('.', end + 1)) {
    const std::string_view module = tensor.substr(0, end);
    const bool asked = std::any_of(saved.begin(), saved.end(),
                                   [&](const std::string& name) { return module.ends_with(name); });
    const bool head = classifies && (module.ends_with("score") || module.ends_with("classifier"));
    if (asked || head) return end;
  }
  return std::nullopt;
}

bool is_inside(const std::vector<std::string>& parts, std::string_view name) {
  for (std::size_t begin = 0; !parts.empty() && begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (std::find(parts.begin(), parts.end(), name.substr(begin, end - begin)) != parts.end())
      return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace shardplan
