#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "engine/offload/state_store.h"

namespace shardplan::validator {
namespace {

/// Buckets in memory at once: one is updated while the ones before it are written and the next are
/// read, so that the disk has both to do all the time.
constexpr std::size_t kBuffers = 4;

constexpr int kNone = -1;

class SwappedStates final : public StateStore {
 public:
  SwappedStates(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                const StateKinds& kinds);

  BucketStates create(int unit, std::int64_t bucket) override;
  BucketStates take(int unit, std::int64_t bucket) override;
  void keep() override;
  BucketStates look(int unit, std::int64_t bucket) override;
  void let_go() override;
  void settle() override;

 private:
  /// A bucket in the file: master, first and second moment one after the other.
  struct Record {
    std::int64_t offset = 0, bytes = 0, elements = 0;
    bool written = false;
  };
  struct Buffer {
    enum class Use : std::uint8_t { vacant, read, held, written };  // or on their way to it
    std::uintptr_t address = 0;
    Use use = Use::vacant;
    int record = kNone;
    Transfer transfer;
  };

  static std::int64_t part(std::int64_t elements, DType dtype) {
    return round_up(checked_mul(elements, size_of(dtype)), kAlignment);
  }
  std::int64_t record_bytes(std::int64_t elements) const {
    const std::int64_t master = kinds_.master ? part(elements, *kinds_.master) : 0;
    return round_up(master + 2 * part(elements, kinds_.moments), kStorageBlock);
  }
  int number_of(int unit, std::int64_t bucket) const {
    return at(first_record_, unit) + static_cast<int>(bucket);
  }
  Buffer& arrived(int record);
  BucketStates hold(Buffer& buffer, int record);
  Buffer* holder_of(int record);
  Buffer& vacate();
  Buffer* vacant_now();
  void begin_read(Buffer& buffer, int record);
  void finish(Buffer& buffer);
  bool is_done(const Buffer& buffer) const;
  void read_ahead();
  void learn(int record);
  std::span<std::byte> memory(const Buffer& buffer) const {
    return {reinterpret_cast<std::byte*>(buffer.address),
            static_cast<std::size_t>(at(records_, buffer.record).bytes)};
  }

  HostSide& host_;
  StateKinds kinds_;
  std::vector<Record> records_;
  std::vector<int> first_record_;  ///< by unit
  std::vector<Buffer> buffers_;
  Buffer* held_ = nullptr;
  // Buckets are taken in the same order in every step. `order_`: that of the step before; in the
  // first one that of the units.
  std::vector<int> order_, place_;  ///< place_[record]: its index in order_
  std::vector<int> taken_;          ///< in this step
  std::size_t next_ = 0;            ///< what to read next, in order_
};

SwappedStates::SwappedStates(Runtime& runtime, const std::vector<Unit>& units,
                             const Sharding& sharding, const StateKinds& kinds)
    : host_(*runtime.host), kinds_(kinds) {
  std::int64_t largest = 0;
  for (const Unit& unit : units) {
    const std::int64_t shard = sharding.shard(unit);
    first_record_.push_back(static_cast<int>(records_.size()));
    if (unit.frozen) continue;
    for (std::int64_t b = 0; b < buckets_of(shard); ++b) {
      const std::int64_t elements = bucket_range(shard, b).count;
      const std::int64_t bytes = record_bytes(elements);
      const Tensor place = host_.nvme.allocate(fmt::format("{}.states.{}", unit.name, b),
                                               Category::optimizer_states, DType::i8, {bytes});
      order_.push_back(static_cast<int>(records_.size()));
      records_.push_back({static_cast<std::int64_t>(place.address), bytes, elements});
      largest = std::max(largest, bytes);
    }
  }
  place_ = order_;
  buffers_.resize(std::min(kBuffers, records_.size()));
  const auto count = static_cast<std::int64_t>(buffers_.size());
  // The arena aligns to less than direct I/O wants: one block more than they take.
  const Tensor all =
      host_.pinned.allocate("states.on_their_way", Category::communication_buffers, DType::i8,
                            {checked_mul(count, largest) + kStorageBlock});
  const auto block = static_cast<std::uintptr_t>(kStorageBlock);
  std::uintptr_t address = (all.address + block - 1) / block * block;
  for (Buffer& buffer : buffers_) {
    buffer.address = address;
    address += static_cast<std::uintptr_t>(largest);
  }
}

BucketStates SwappedStates::create(int unit, std::int64_t bucket) {
  const int record = number_of(unit, bucket);
  Buffer* buffer = holder_of(record);
  if (buffer == nullptr) buffer = &vacate();
  finish(*buffer);
  return hold(*buffer, record);
}

BucketStates SwappedStates::take(int unit, std::int64_t bucket) {
  const int record = number_of(unit, bucket);
  const BucketStates states = hold(arrived(record), record);
  learn(record);
  read_ahead();
  return states;
}

/// Waits until a bucket is in a buffer.
SwappedStates::Buffer& SwappedStates::arrived(int record) {
  Buffer* buffer = holder_of(record);
  if (buffer != nullptr && buffer->use == Buffer::Use::written) {
    finish(*buffer);  // what is in the file is what counts
    begin_read(*buffer, record);
  }
  if (buffer == nullptr) {
    buffer = &vacate();
    begin_read(*buffer, record);
  }
  if (host_.swap != nullptr) host_.swap->wait(buffer->transfer);
  return *buffer;
}

/// The order of steps is not learned from it. What it takes a buffer from is read again.
BucketStates SwappedStates::look(int unit, std::int64_t bucket) {
  const int record = number_of(unit, bucket), next = record + 1;
  const BucketStates states = hold(arrived(record), record);
  if (next < std::ssize(records_) && holder_of(next) == nullptr) begin_read(vacate(), next);
  return states;
}

void SwappedStates::let_go() {
  assert(held_ != nullptr);
  finish(*held_);
  held_ = nullptr;
}

BucketStates SwappedStates::hold(Buffer& buffer, int record) {
  assert(held_ == nullptr);
  buffer.use = Buffer::Use::held;
  buffer.record = record;
  held_ = &buffer;
  const std::int64_t n = at(records_, record).elements;
  std::uintptr_t address = buffer.address;
  const auto next = [&](DType dtype) {
    const Tensor x{address, dtype, Shape{n}};
    address += static_cast<std::uintptr_t>(part(n, dtype));
    return x;
  };
  BucketStates states;
  if (kinds_.master) states.master = next(*kinds_.master);
  states.first_moment = next(kinds_.moments);
  states.second_moment = next(kinds_.moments);
  return states;
}

void SwappedStates::keep() {
  assert(held_ != nullptr);
  Buffer& buffer = *held_;
  held_ = nullptr;
  buffer.use = Buffer::Use::written;
  Record& record = at(records_, buffer.record);
  record.written = true;
  if (host_.swap != nullptr) buffer.transfer = host_.swap->write(record.offset, memory(buffer));
  read_ahead();
}

void SwappedStates::settle() {
  for (Buffer& buffer : buffers_)
    if (buffer.use == Buffer::Use::written) finish(buffer);
}

SwappedStates::Buffer* SwappedStates::holder_of(int record) {
  for (Buffer& buffer : buffers_)
    if (buffer.use != Buffer::Use::vacant && buffer.record == record) return &buffer;
  return nullptr;
}

/// A buffer for something else, whatever it takes. One at most is held.
SwappedStates::Buffer& SwappedStates::vacate() {
  if (Buffer* buffer = vacant_now()) return *buffer;
  const auto with = [&](Buffer::Use use) {
    return std::find_if(buffers_.begin(), buffers_.end(),
                        [&](const Buffer& b) { return b.use == use; });
  };
  auto buffer = with(Buffer::Use::written);
  // What was read in vain will be read again.
  if (buffer == buffers_.end()) buffer = with(Buffer::Use::read);
  assert(buffer != buffers_.end());
  finish(*buffer);
  return *buffer;
}

/// One that nothing is to be waited for.
SwappedStates::Buffer* SwappedStates::vacant_now() {
  for (Buffer& buffer : buffers_) {
    if (buffer.use == Buffer::Use::written && is_done(buffer)) finish(buffer);
    if (buffer.use == Buffer::Use::vacant) return &buffer;
  }
  return nullptr;
}

bool SwappedStates::is_done(const Buffer& buffer) const {
  return host_.swap == nullptr || host_.swap->is_done(buffer.transfer);
}

void SwappedStates::finish(Buffer& buffer) {
  if (buffer.transfer != nullptr) host_.swap->wait(buffer.transfer);
  buffer.transfer = nullptr;
  buffer.use = Buffer::Use::vacant;
}

void SwappedStates::begin_read(Buffer& buffer, int record) {
  buffer.use = Buffer::Use::read;
  buffer.record = record;
  if (host_.swap != nullptr)
    buffer.transfer = host_.swap->read(at(records_, record).offset, memory(buffer));
}

/// Reads what comes next in the order, over the end of a step as well: nothing changes it before it
/// is taken. A bucket that is still on its way to the file is not read before it is there.
void SwappedStates::read_ahead() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const int record = order_[next_];
    if (!at(records_, record).written || holder_of(record) != nullptr) return;
    Buffer* buffer = vacant_now();
    if (buffer == nullptr) return;
    begin_read(*buffer, record);
    next_ = (next_ + 1) % order_.size();
  }
}

void SwappedStates::learn(int record) {
  taken_.push_back(record);
  if (taken_.size() == records_.size()) {
    order_.swap(taken_);
    taken_.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) at(place_, order_[i]) = static_cast<int>(i);
  }
  // On from here, but for what is there already.
  next_ = (static_cast<std::size_t>(at(place_, record)) + 1) % order_.size();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer* buffer = holder_of(order_[next_]);
    if (buffer == nullptr || buffer->use != Buffer::Use::read) return;
    next_ = (next_ + 1) % order_.size();
  }
}

}  // namespace

std::unique_ptr<StateStore> make_swapped_states(Runtime& runtime, const std::vector<Unit>& units,
                                                const Sharding& sharding, const StateKinds& kinds) {
  return std::make_unique<SwappedStates>(runtime, units, sharding, kinds);
}

}  // namespace shardplan::validator
