#include "formats/stored_format.h"

namespace shardplan {

std::optional<Quantization> parse_quantization(std::string_view name, unsigned uses) {
  for (std::size_t i = 0; i < kStoredFormats.size(); ++i)
    if (kStoredFormats[i].name == name && (kStoredFormats[i].uses & uses) == uses)
      return static_cast<Quantization>(i);
  return std::nullopt;
}

std::vector<std::string> quantization_names(unsigned uses) {
  std::vector<std::string> names;
  for (const NumberFormat& format : kStoredFormats)
    if ((format.uses & uses) == uses) names.emplace_back(format.name);
  return names;
}

}  // namespace shardplan
