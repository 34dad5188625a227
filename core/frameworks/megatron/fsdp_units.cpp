#include "frameworks/megatron/fsdp_units.h"

#include <algorithm>

namespace shardplan {
namespace {

std::int64_t elements_of(const Model& own, const ParameterGroup& group) {
  std::int64_t elements = 0;
  for (std::int32_t i = group.first; i < group.first + group.count; ++i)
    elements += own.parameters[static_cast<std::size_t>(i)].numel;
  return elements;
}

}  // namespace

std::int64_t largest_block(const Model& own) {
  std::int64_t largest = 0;
  for (const ParameterGroup& group : own.groups)
    if (group.repeat > 1) largest = std::max(largest, elements_of(own, group));
  return largest;
}

std::int64_t outside_blocks(const Model& own) {
  std::int64_t sum = 0;
  for (const ParameterGroup& group : own.groups)
    if (group.repeat == 1) sum += elements_of(own, group);
  return sum;
}

}  // namespace shardplan
