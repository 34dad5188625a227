#include "formats/dtype.h"

#include <algorithm>

namespace shardplan {

std::optional<DType> parse_dtype(std::string_view name, unsigned uses) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    const NumberFormat& format = kDTypes[i];
    const auto& others = format.other_names;
    const bool named =
        format.name == name || std::find(others.begin(), others.end(), name) != others.end();
    if (named && (format.uses & uses) == uses) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::vector<std::string> dtype_names(unsigned uses) {
  std::vector<std::string> names;
  for (const NumberFormat& format : kDTypes)
    if ((format.uses & uses) == uses) names.emplace_back(format.name);
  return names;
}

}  // namespace shardplan
