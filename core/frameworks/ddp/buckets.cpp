#include "frameworks/ddp/buckets.h"

#include <algorithm>
#include <limits>

#include "lowering/tensors.h"

namespace shardplan {
namespace {

constexpr std::int64_t kFirstCap = kMiB;
constexpr std::int32_t kFirstBucketName = 2;  // 0 and 1 are the broadcasts under way
constexpr std::int64_t kBroadcastCap = 250 * kMiB;

/// Fills buckets with tensors in the order given; one is closed when it reaches its cap.
class Buckets {
 public:
  Buckets(std::int64_t first_cap, std::int64_t cap) : limit_(first_cap), cap_(cap) {}

  void add(std::int64_t tensor_bytes) {
    filled_ += tensor_bytes;
    ++tensors_;
    if (filled_ >= limit_) close();
  }
  void close() {
    if (tensors_ == 0) return;
    bytes.push_back(round_up(filled_, kAllocationUnit));
    tensors.push_back(tensors_);
    filled_ = tensors_ = 0;
    limit_ = cap_;
  }

  std::vector<std::int64_t> bytes;    ///< by bucket
  std::vector<std::int64_t> tensors;  ///< by bucket

 private:
  std::int64_t limit_, cap_;
  std::int64_t filled_ = 0, tensors_ = 0;
};

template <typename Visit>
void in_registration_order(const Model& model, Visit&& visit) {
  for (const ParameterGroup& g : model.groups)
    for (std::int64_t k = 0; k < g.repeat; ++k)
      for (std::int32_t i = g.first; i < g.first + g.count; ++i)
        visit(model.parameters[static_cast<std::size_t>(i)]);
}

/// A tied parameter's gradient is ready at its last use.
template <typename Visit>
void in_gradient_order(const Model& model, const ModelRun& run, Visit&& visit) {
  std::vector<std::int64_t> left(model.parameters.size(), 0);
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.backward.backward)
      if (e.kind == TapeEvent::Kind::gradient) ++left[static_cast<std::size_t>(e.id)];
  for (std::size_t s = run.segments.size(); s-- > 0;)
    for (std::int64_t k = 0; k < run.segments[s].segment->repeat; ++k)
      for (const TapeEvent& e : run.segments[s].backward.backward) {
        if (e.kind != TapeEvent::Kind::gradient) continue;
        const auto id = static_cast<std::size_t>(e.id);
        if (left[id] > 1) {
          --left[id];
        } else {
          visit(model.parameters[id]);
        }
      }
}

/// The parameters go to all ranks in flat copies, two of them under way at a time; the flat copy of
/// one tensor is the tensor itself. Their segments stay cached, and the buckets move in.
void append_broadcast(std::vector<Event>& build, const Model& model, const Precision& precision) {
  Buckets flat(kBroadcastCap, kBroadcastCap);
  in_registration_order(model, [&](const Parameter& p) {
    flat.add(checked_mul(p.numel, size_of(p.adapter ? DType::f32 : precision.params)));
  });
  flat.close();
  const auto append = [&](std::size_t i, Event::Kind kind) {
    if (flat.tensors[i] == 1) return;
    append_tensors(build, Category::communication_buffers, flat.bytes[i], 1);
    build.back().kind = kind;
    build.back().name = static_cast<std::int32_t>(i % 2);
  };
  const std::size_t n = flat.bytes.size();
  for (std::size_t i = 0; i < n + 2; ++i) {
    if (i >= 2) append(i - 2, Event::Kind::free);
    if (i < n) append(i, Event::Kind::alloc);
  }
}

}  // namespace

DdpRebuild add_ddp_buckets(Program& program, const Model& model, const ModelRun& run,
                           const Precision& precision, const BucketOptions& options) {
  program.build = program.resident;
  append_broadcast(program.build, model, precision);

  const auto bytes_of = [&](const Parameter& p) {
    return checked_mul(p.numel, size_of(p.adapter ? DType::f32 : precision.gradients));
  };
  const std::int64_t cap = options.cap;
  const bool made_anew = options.made_anew && !run.segments.empty();
  // One for all where they are made anew (distributed.py, _ddp_init_helper).
  constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();
  Buckets first(options.made_anew ? kNoCap : std::min(kFirstCap, cap), cap);
  in_registration_order(model, [&](const Parameter& p) {
    if (p.trainable) first.add(bytes_of(p));
  });
  first.close();
  std::reverse(first.bytes.begin(), first.bytes.end());
  std::vector<Event> made;
  for (const std::int64_t bytes : first.bytes) append_tensors(made, options.category, bytes, 1);
  for (std::size_t i = 0; i < made.size() && made_anew; ++i)
    made[i].name = kFirstBucketName + static_cast<std::int32_t>(i);
  program.build.insert(program.build.end(), made.begin(), made.end());

  // After the first step they are filled anew, in the order in which gradients were ready.
  DdpRebuild rebuild;
  if (made_anew) {
    Buckets rebuilt(std::min(kFirstCap, cap), cap);
    in_gradient_order(model, run, [&](const Parameter& p) { rebuilt.add(bytes_of(p)); });
    rebuilt.close();
    for (Event& e : made) {
      e.kind = Event::Kind::free;
      rebuild.held.push_back(e);
    }
    made.clear();
    for (const std::int64_t bytes : rebuilt.bytes) append_tensors(made, options.category, bytes, 1);
    rebuild.made = made;
  }
  program.resident.insert(program.resident.end(), made.begin(), made.end());
  return rebuild;
}

}  // namespace shardplan
