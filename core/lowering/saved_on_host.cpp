#include "lowering/saved_on_host.h"

#include <algorithm>

namespace shardplan::detail {
namespace {

/// The stash has the inputs of the last blocks; that of the block which runs is there anyway.
constexpr std::int64_t kInputsBeingSent = 4;

}  // namespace

void emit_copy(ProgramBuilder& b, const TapeEvent& e) {
  if (e.kind == TapeEvent::Kind::wait_for_copies) return b.wait(Stream::copy, e.bytes);
  if (e.kind == TapeEvent::Kind::copies_follow) return b.follow(Stream::copy);
  if (e.kind == TapeEvent::Kind::host_waits) return b.synchronize();
  const bool back = e.kind == TapeEvent::Kind::to_gpu;
  const auto waits = static_cast<CopyWait>(e.id);
  const std::string_view what =
      back ? "saved activations from the host" : "saved activations to the host";
  if (back && waits == CopyWait::nobody)
    b.fetch_ahead(LinkKind::host, e.bytes, what);
  else
    b.copy(LinkKind::host, back, e.bytes, what);
  if (waits != CopyWait::nobody) b.wait(Stream::copy);
  if (waits == CopyWait::host) b.synchronize();
}

void drain(ProgramBuilder& b, std::vector<TailedFree>& pending, std::int64_t place) {
  std::erase_if(pending, [&](const TailedFree& left) {
    if (left.place > place) return false;
    b.free(left.event.category, left.event.bytes, left.event.pool);
    return true;
  });
}

void leave(std::vector<TailedFree>& pending, const std::vector<TailedFree>& tail,
           std::int64_t hooked) {
  for (TailedFree& left : pending) left.place -= hooked;
  pending.insert(pending.end(), tail.begin(), tail.end());
}

std::vector<TailedFree> inputs_being_sent(const Plan& plan, const Segment& segment,
                                          std::int64_t input_bytes) {
  std::vector<TailedFree> inputs;
  const bool sends = plan.activation_offloading == ActivationOffloading::streams &&
                     plan.recomputes_blocks() && segment.checkpointable;
  const std::int64_t count = sends ? std::min(kInputsBeingSent, segment.repeat - 1) : 0;
  for (std::int64_t k = 0; k < count; ++k)
    inputs.push_back(
        {{TapeEvent::Kind::free, Category::activations, kNoSlot, input_bytes}, k + 1 - count});
  return inputs;
}

}  // namespace shardplan::detail
