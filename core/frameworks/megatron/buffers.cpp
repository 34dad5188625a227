#include "frameworks/megatron/buffers.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/checked.h"

namespace shardplan {
namespace {

/// Lays parameters out one after the other.
class BufferLayout {
 public:
  BufferLayout(const MegatronOptions& options, std::int64_t ranks)
      : pads_(options.distributed_optimizer), bucket_(bucket_size(options, ranks)) {
    if (pads_) end_ = std::lcm(std::lcm(ranks, std::int64_t{128}), options.pad_buckets ? 65536 : 1);
  }

  void add(std::int64_t numel) {
    if (pads_) at_ = round_up(at_, 64);
    at_ += numel;
    if (at_ - start_ >= bucket_) close();
  }

  GradientBuffer finish() {
    if (at_ > start_) close();
    return {at_, buckets_};
  }

 private:
  static std::int64_t bucket_size(const MegatronOptions& options, std::int64_t ranks) {
    if (!options.overlap_grad_reduce) return std::numeric_limits<std::int64_t>::max();
    return options.bucket_size.value_or(std::max<std::int64_t>(40'000'000, 1'000'000 * ranks));
  }

  void close() {
    at_ = round_up(at_, end_);
    start_ = at_;
    ++buckets_;
  }

  bool pads_;
  std::int64_t bucket_;
  std::int64_t end_ = 1;
  std::int64_t at_ = 0, start_ = 0, buckets_ = 0;
};

}  // namespace

GradientBuffers gradient_buffers(const Model& own, const MegatronOptions& options,
                                 std::int64_t ranks, std::int64_t expert_ranks) {
  BufferLayout dense(options, ranks), experts(options, expert_ranks);
  for (auto group = own.groups.rbegin(); group != own.groups.rend(); ++group)
    for (std::int64_t layer = 0; layer < group->repeat; ++layer)
      for (std::int32_t i = group->first + group->count; i-- > group->first;) {
        const Parameter& p = own.parameters[static_cast<std::size_t>(i)];
        if (p.trainable) (p.kind == ParameterKind::expert ? experts : dense).add(p.numel);
      }
  return {dense.finish(), experts.finish()};
}

}  // namespace shardplan
