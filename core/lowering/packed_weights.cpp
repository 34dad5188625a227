#include "lowering/packed_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "lowering/tensors.h"
#include "program/tape.h"

namespace shardplan {
namespace {

bool any_quantized(const Model& model) {
  return std::ranges::any_of(model.parameters, [](const Parameter& p) { return p.quantized(); });
}

}  // namespace

PackedWeights::PackedWeights(const Model& model, DType storage) : whole_(model) {
  if (!any_quantized(model)) return;
  packed_.emplace();
  packed_->facts = model.facts;
  packed_->parameters = model.parameters;
  packed_->modules = model.modules;
  packed_->groups = model.groups;
  packed_->shared = model.shared;
  for (Parameter& p : packed_->parameters) {
    if (!p.quantized()) continue;
    const std::int64_t bytes =
        bytes_of_parts(format_of(p.stored), p.numel, p.shape.front()).front();
    p.numel = ceil_div(bytes, size_of(storage));
    p.shape = {p.numel, 1};
  }
}

void PackedWeights::append_whole_parts(std::vector<Event>& list) const {
  whole_.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.quantized()) return;
    const std::vector<std::int64_t> parts =
        bytes_of_parts(format_of(p.stored), p.numel, p.shape.front());
    for (std::size_t i = 1; i < parts.size(); ++i)
      append_tensors(list, Category::parameters, round_up(parts[i], kAllocationUnit), repeat);
  });
}

double most_over_packed(const Model& model, bool on_host) {
  constexpr double kOnGpus = 35.6 / 32.2, kOnHost = 19.6 / 14.9;
  if (!any_quantized(model)) return 1;
  return on_host ? kOnHost : kOnGpus;
}

}  // namespace shardplan
