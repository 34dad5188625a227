#include "program/tape/offloading.h"

#include <algorithm>

#include "base/checked.h"
#include "program/pinned_memory.h"

namespace shardplan::tape {
namespace {

constexpr std::int64_t kSmallest = 1024;  // bytes: min_offload_size
constexpr std::int64_t kStash = 5;        // max_fwd_stash_size
// Python's work for a tensor: the hook itself, events, a buffer on the host, a copy.
constexpr std::int32_t kCallsOfHook = 4;

}  // namespace

bool Offloading::takes(StorageId id, const SavedView& view) {
  if (!active() || paused_) return false;
  ++count_;
  for (Known& known : known_) {
    if (known.id != id || known.part != view.part) continue;
    known.place = count_;
    return false;
  }
  const std::int64_t bytes = view.bytes > 0 ? view.bytes : storages_.of(id).bytes;
  return bytes >= kSmallest && !lies_where_known_lay(id);
}

/// Hooks know a tensor by its address. That of one which they have copied to send it is free before
/// they forget it, and the next tensor of its size that is allocated may get it: it is taken for
/// the same, and stays.
bool Offloading::lies_where_known_lay(StorageId id) {
  for (Known& known : known_) {
    if (!known.copied || known.part != kNone || known.id >= id) continue;
    const Storage& gone = storages_.of(known.id);
    if (gone.refs > 0 || gone.bytes != storages_.of(id).bytes) continue;
    known = {id, kNone, count_, false};
    return true;
  }
  return false;
}

/// What was saved five tensors ago has arrived, or the GPU waits for it.
void Offloading::evict() {
  while (!sending_.empty()) {
    Sent& oldest = sent_[static_cast<std::size_t>(sending_.front())];
    if (oldest.place > count_ - kStash) break;
    writer_.wait_for_copies(sent_bytes_ - oldest.sent_before);
    std::erase_if(known_, [&](const Known& known) { return known.place == oldest.place; });
    drop(oldest);
    sending_.erase(sending_.begin());
  }
  if (drained_) return;
  // Tensors that are not sent are counted too: the first one that is may be past the fifth.
  const std::int64_t place = std::min<std::int64_t>(count_ - kStash, 0);
  writer_.emit(TapeEvent::Kind::drain, Category::activations, static_cast<std::int32_t>(place), 0);
  drained_ = place == 0;
}

void Offloading::drop(Sent& sent) {
  storages_.unref(sent.on_gpu);
  sent.on_gpu = kExternal;
}

std::int32_t Offloading::send(StorageId id, const SavedView& view) {
  const Storage storage = storages_.of(id);
  const std::int64_t bytes = view.bytes > 0 ? round_up(view.bytes, kAllocationUnit) : storage.bytes;
  Sent sent{bytes, storage.category, kExternal, count_, 0};
  const bool copied = view.strided || view.part != kNone;  // to a contiguous one, before it is sent
  const StorageId from = copied ? storages_.allocate(bytes, storage.category) : id;
  if (!copied) storages_.ref(id);
  if (streams()) evict();
  writer_.python_calls(kCallsOfHook);
  writer_.copy(TapeEvent::Kind::to_host, bytes, CopyWait::nobody);
  sent_bytes_ += bytes;
  sent.sent_before = sent_bytes_;
  pinned_ = checked_add(pinned_, pinned_block(bytes));
  const auto number = static_cast<std::int32_t>(sent_.size());
  if (streams()) {
    sent.on_gpu = from;
    known_.push_back({id, view.part, count_, copied});
    sending_.push_back(number);
  } else {
    writer_.wait_for_copies(0);
    storages_.unref(from);
  }
  sent_.push_back(sent);
  return number;
}

StorageId Offloading::bring_back(std::int32_t number) {
  const Sent& sent = sent_[static_cast<std::size_t>(number)];
  if (sent.on_gpu != kExternal) {
    storages_.ref(sent.on_gpu);
    return sent.on_gpu;
  }
  const StorageId id =
      storages_.allocate(sent.bytes, sent.category, streams() ? Stream::copy : Stream::compute);
  writer_.python_calls(kCallsOfHook);
  writer_.copy(TapeEvent::Kind::to_gpu, sent.bytes,
               streams() ? CopyWait::nobody : CopyWait::compute);
  if (streams()) {
    storages_.set_used_on(id, Stream::copy);
    storages_.ref(id);
    brought_.push_back(id);
  }
  return id;
}

void Offloading::begin_node() {
  if (!brought_.empty()) writer_.copies_follow();
}

void Offloading::end_node() {
  for (const std::int32_t number : sending_) drop(sent_[static_cast<std::size_t>(number)]);
  sending_.clear();
  if (brought_.empty()) return;
  if (first_node_) writer_.emit(TapeEvent::Kind::drain, Category::activations, 0, 0);
  first_node_ = false;
  for (const StorageId id : before_) storages_.unref(id);
  before_.clear();
  for (const StorageId id : brought_) {
    if (!storages_.is_shared(id)) {
      before_.push_back(id);
      continue;
    }
    storages_.set_used_on(id, Stream::compute);
    storages_.unref(id);
  }
  brought_.clear();
}

std::vector<TailedFree> Offloading::leave_sending() {
  std::vector<TailedFree> left;
  for (const std::int32_t number : sending_) {
    Sent& sent = sent_[static_cast<std::size_t>(number)];
    const Storage& storage = storages_.of(sent.on_gpu);
    if (storage.refs > 1 || storage.exported || storage.slot < 0)
      storages_.unref(sent.on_gpu);
    else
      left.push_back({storages_.free_event(sent.on_gpu), sent.place - count_});
    sent.on_gpu = kExternal;
  }
  sending_.clear();
  return left;
}

std::vector<TailedFree> Offloading::leave_brought() {
  std::vector<TailedFree> left;
  for (const StorageId id : before_) {
    if (storages_.of(id).refs > 1)
      storages_.unref(id);
    else
      left.push_back({storages_.free_event(id), 0});
  }
  before_.clear();
  return left;
}

}  // namespace shardplan::tape
