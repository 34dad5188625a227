#include "model/joint_linears.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardplan {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kParts{
    {{"q_proj", "qkv"},
     {"k_proj", "qkv"},
     {"v_proj", "qkv"},
     {"gate_proj", "gate_up"},
     {"up_proj", "gate_up"},
     {"in_proj_qkv", "in_proj"},
     {"in_proj_z", "in_proj"},
     {"in_proj_b", "in_proj"},
     {"in_proj_a", "in_proj"},
     {"in_proj_qkvz", "in_proj"},
     {"in_proj_ba", "in_proj"}}};

}  // namespace

std::optional<std::string_view> joint_linear(std::string_view last_name) {
  for (const auto& [part, whole] : kParts)
    if (last_name == part) return whole;
  return std::nullopt;
}

std::string joined_name(std::string_view tensor) {
  std::string name;
  while (!tensor.empty()) {
    const std::size_t dot = std::min(tensor.find('.'), tensor.size());
    if (!name.empty()) name += '.';
    name += joint_linear(tensor.substr(0, dot)).value_or(tensor.substr(0, dot));
    tensor.remove_prefix(std::min(dot + 1, tensor.size()));
  }
  return name;
}

}  // namespace shardplan
