#include "frameworks/megatron/buffers.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/checked.h"
#include "model/joint_linears.h"

namespace shardplan {
namespace {

/// Lays parameters out one after the other.
class BufferLayout {
 public:
  BufferLayout(const MegatronOptions& options, std::int64_t ranks, std::int64_t place)
      : pads_(options.distributed_optimizer),
        bucket_(bucket_size(options, ranks)),
        ranks_(ranks),
        place_(place) {
    if (pads_) end_ = std::lcm(std::lcm(ranks, std::int64_t{128}), options.pad_buckets ? 65536 : 1);
  }

  /// A parameter, or the part of a joint linear called `name`: neighbours of one name are one.
  void add(std::int64_t numel, std::string name) {
    if (pads_) at_ = round_up(at_, 64);
    if (name.empty() || name != name_ || spans_.empty()) spans_.push_back({at_, at_});
    name_ = std::move(name);
    at_ += numel;
    spans_.back().end = at_;
    if (at_ - start_ >= bucket_) close();
  }

  GradientBuffer finish() {
    if (at_ > start_) close();
    return {at_, buckets_, std::move(shards_)};
  }

 private:
  static std::int64_t bucket_size(const MegatronOptions& options, std::int64_t ranks) {
    if (!options.overlap_grad_reduce) return std::numeric_limits<std::int64_t>::max();
    return options.bucket_size.value_or(std::max<std::int64_t>(40'000'000, 1'000'000 * ranks));
  }

  struct Span {
    std::int64_t begin = 0, end = 0;
  };

  void close() {
    at_ = round_up(at_, end_);
    const std::int64_t share = ceil_div(at_ - start_, ranks_);
    const Span own{start_ + place_ * share, start_ + (place_ + 1) * share};
    for (const Span& span : spans_) {
      const std::int64_t inside = std::min(span.end, own.end) - std::max(span.begin, own.begin);
      if (inside > 0) shards_.push_back(inside);
    }
    spans_.clear();
    start_ = at_;
    ++buckets_;
  }

  bool pads_;
  std::int64_t bucket_, ranks_, place_;
  std::string name_;
  std::vector<Span> spans_;  ///< of the bucket's parameters
  std::vector<std::int64_t> shards_;
  std::int64_t end_ = 1;
  std::int64_t at_ = 0, start_ = 0, buckets_ = 0;
};

}  // namespace

GradientBuffers gradient_buffers(const Model& own, const MegatronOptions& options,
                                 std::int64_t ranks, std::int64_t expert_ranks,
                                 const BufferPlaces& places) {
  BufferLayout dense(options, ranks, places.dense);
  BufferLayout experts(options, expert_ranks, places.experts);
  for (auto group = own.groups.rbegin(); group != own.groups.rend(); ++group)
    for (std::int64_t layer = 0; layer < group->repeat; ++layer)
      for (std::int32_t i = group->first + group->count; i-- > group->first;) {
        const Parameter& p = own.parameters[static_cast<std::size_t>(i)];
        if (!p.trainable) continue;
        if (p.kind != ParameterKind::expert) {
          const std::string name = joined_name(p.name);
          dense.add(p.numel, name == p.name ? "" : name);
          continue;
        }
        const std::int64_t each = p.shape.size() == 3 ? p.shape.front() : 1;
        for (std::int64_t expert = 0; expert < each; ++expert) experts.add(p.numel / each, "");
      }
  return {dense.finish(), experts.finish()};
}

}  // namespace shardplan
