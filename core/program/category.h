// What a byte is for. The names are part of the estimate's format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardplan {

enum class Category : std::uint8_t {
  parameters,
  gradients,
  master_parameters,
  optimizer_states,
  activations,
  logits_and_loss,
  gathered_parameters,
  communication_buffers,
  workspace,
  fragmentation,
  cuda_context,
  nccl,
  other,
  kv_cache,  ///< keys and values of earlier tokens
};

inline constexpr std::array<std::string_view, 14> kCategoryNames{
    "parameters",  "gradients",       "master_parameters",   "optimizer_states",
    "activations", "logits_and_loss", "gathered_parameters", "communication_buffers",
    "workspace",   "fragmentation",   "cuda_context",        "nccl",
    "other",       "kv_cache"};
inline constexpr std::size_t kCategoryCount = kCategoryNames.size();

constexpr std::size_t index_of(Category c) {
  return static_cast<std::size_t>(c);
}
constexpr std::string_view name_of(Category c) {
  return kCategoryNames[index_of(c)];
}

}  // namespace shardplan
