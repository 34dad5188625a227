#include "engine/offload/host_gradients.h"

#include <fmt/format.h>

namespace shardplan::validator {

HostGradients::HostGradients(Runtime& runtime, const std::vector<Unit>& units,
                             const Sharding& sharding, DType dtype, int sets, bool adds)
    : runtime_(runtime), units_(units), sets_(static_cast<std::size_t>(sets)) {
  std::int64_t largest = 0;
  for (const Unit& unit : units_) {
    const std::int64_t shard = sharding.shard(unit);
    std::vector<Event>& events = arrived_.emplace_back();
    if (unit.frozen) {
      for (Set& set : sets_) set.of_unit.emplace_back();
      continue;
    }
    largest = std::max(largest, std::min(shard, kBucketElements));
    for (Set& set : sets_)
      set.of_unit.push_back(runtime_.host->pinned.allocate(unit.name + ".gradients",
                                                           Category::gradients, dtype, {shard}));
    for (std::int64_t b = 0; b < buckets_of(shard); ++b)
      events.push_back(runtime_.device.new_event());
  }
  if (!adds) return;
  for (int i = 0; i < 2; ++i)
    landings_.push_back(
        {runtime_.host->pinned.allocate(fmt::format("landing.{}", i),
                                        Category::communication_buffers, dtype, {largest}),
         {},
         runtime_.device.new_event()});
}

void HostGradients::take(int unit, const Tensor& shard, Event ready, bool adds) {
  runtime_.device.wait(Stream::to_host, ready);
  for_each_bucket(shard.numel(), [&](std::int64_t b, auto&& range) {
    const Tensor sum = range(of(unit));
    if (!adds) {
      runtime_.device.fetch(sum, range(shard));
      runtime_.device.record(at(arrived_, unit)[static_cast<std::size_t>(b)], Stream::to_host);
      return;
    }
    Landing& landing = landings_[next_landing_];
    next_landing_ = (next_landing_ + 1) % landings_.size();
    settle(landing);
    runtime_.device.fetch(landing.tensor.slice(0, sum.numel()), range(shard));
    runtime_.device.record(landing.arrived, Stream::to_host);
    landing.sum = sum;
  });
  if (!adds) order_.push_back(unit);
}

void HostGradients::settle(Landing& landing) {
  if (landing.sum.empty()) return;
  runtime_.device.await(landing.arrived);
  runtime_.host->compute.add(landing.sum, landing.tensor.slice(0, landing.sum.numel()));
  landing.sum = {};
}

double HostGradients::squared_norm(const std::vector<std::vector<ElementRange>>& counted) {
  for (std::size_t i = 0; i < landings_.size(); ++i)  // the oldest first
    settle(landings_[(next_landing_ + i) % landings_.size()]);
  std::vector<std::vector<double>> sums(units_.size());
  for (const int unit : order_) {
    const std::vector<ElementRange>& ranges = at(counted, unit);
    at(sums, unit).resize(ranges.size());
    for_each_bucket(of(unit).numel(), [&](std::int64_t b, const BucketRange& bucket) {
      runtime_.device.await(at(arrived_, unit)[static_cast<std::size_t>(b)]);
      for (std::size_t r = 0; r < ranges.size(); ++r) {
        const ElementRange part = overlap(ranges[r], bucket.first, bucket.count);
        if (part.count > 0)
          at(sums, unit)[r] +=
              runtime_.host->compute.squared_norm(of(unit).slice(part.first, part.count));
      }
    });
  }
  order_.clear();
  // In the units' order, the sum of each range rounded to fp32, as a device adds them.
  double total = 0;
  for (const std::vector<double>& of_unit : sums)
    for (const double sum : of_unit) total = static_cast<double>(static_cast<float>(total + sum));
  return total;
}

}  // namespace shardplan::validator
