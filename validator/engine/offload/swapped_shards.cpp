#include <algorithm>
#include <cassert>
#include <optional>

#include "engine/offload/direct_shards.h"
#include "engine/offload/host_shards.h"
#include "engine/slots.h"

namespace shardplan::validator {
namespace {

class SwappedShards final : public HostShards {
 public:
  SwappedShards(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                DType dtype, bool tied, bool direct);

  Tensor look(int unit) override;
  Tensor create(int unit) override;
  Tensor take(int unit) override;
  void keep(int unit) override;
  Arrival bring(int unit, const Tensor& to, Event vacant) override;
  void land(int unit) override;
  void store(int unit, const Tensor& from, Event written) override;
  void expect(int unit, bool changes) override;
  void use(const Tensor& slot) override;
  void settle() override;

 private:
  /// A unit's shard in the file.
  struct Home {
    std::int64_t offset = 0, bytes = 0;
    DType dtype = DType::bf16;
    std::int64_t elements = 0;
  };
  struct Buffer {
    std::uintptr_t address = 0;
    int holder = -1;
    bool reads = false;  ///< what `transfer` does: it brings the values
    Transfer transfer;
    Event sent = 0;
  };

  Buffer& buffer_of(int unit) { return at(buffers_, at(slots_.of_unit, unit)); }
  Tensor tensor(const Buffer& buffer, int unit) const {
    const Home& home = at(homes_, unit);
    return {buffer.address, home.dtype, Shape{home.elements}};
  }
  std::span<std::byte> memory(const Buffer& buffer, int unit) const {
    return {reinterpret_cast<std::byte*>(buffer.address),
            static_cast<std::size_t>(at(homes_, unit).bytes)};
  }
  Buffer& hold(int unit);
  void vacate(Buffer& buffer);
  void wait(Buffer& buffer);

  Backend& device_;
  HostSide& host_;
  SlotMap slots_;
  std::vector<Home> homes_;      ///< by unit
  std::vector<Buffer> buffers_;  ///< by slot
  std::optional<DirectShards> direct_;
};

SwappedShards::SwappedShards(Runtime& runtime, const std::vector<Unit>& units,
                             const Sharding& sharding, DType dtype, bool tied, bool direct)
    : device_(runtime.device),
      host_(*runtime.host),
      slots_(map_slots(units, sharding, tied, SlotsOf::parameters)) {
  std::vector<std::int64_t> largest(slots_.slots.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    const DType stored = units[u].stored_as(dtype);
    const std::int64_t elements = sharding.shard(units[u]);
    const std::int64_t bytes = round_up(checked_mul(elements, size_of(stored)), kStorageBlock);
    const Tensor place = host_.nvme.allocate(units[u].name + ".parameters", Category::parameters,
                                             DType::i8, {bytes});
    homes_.push_back({static_cast<std::int64_t>(place.address), bytes, stored, elements});
    std::int64_t& most = at(largest, slots_.of_unit[u]);
    most = std::max(most, bytes);
  }
  std::int64_t bytes = kStorageBlock;  // the arena aligns to less than direct I/O wants
  for (const std::int64_t each : largest) bytes += each;
  const Tensor all = host_.pinned.allocate("parameters.on_their_way",
                                           Category::communication_buffers, DType::i8, {bytes});
  const auto block = static_cast<std::uintptr_t>(kStorageBlock);
  std::uintptr_t address = (all.address + block - 1) / block * block;
  for (const std::int64_t each : largest) {
    buffers_.push_back({.address = address, .sent = device_.new_event()});
    address += static_cast<std::uintptr_t>(each);
  }
  if (direct) direct_.emplace(device_, host_.direct, buffers_.size());
}

Tensor SwappedShards::look(int unit) {
  Buffer& buffer = hold(unit);
  if (buffer.reads) wait(buffer);  // what is being written may be read meanwhile
  return tensor(buffer, unit);
}

Tensor SwappedShards::create(int unit) {
  Buffer& buffer = buffer_of(unit);
  vacate(buffer);
  buffer.holder = unit;
  return tensor(buffer, unit);
}

Tensor SwappedShards::take(int unit) {
  Buffer& buffer = hold(unit);
  wait(buffer);
  device_.await(buffer.sent);
  return tensor(buffer, unit);
}

void SwappedShards::keep(int unit) {
  Buffer& buffer = buffer_of(unit);
  assert(buffer.holder == unit && buffer.transfer == nullptr);
  if (host_.swap == nullptr) return;
  buffer.reads = false;
  buffer.transfer = host_.swap->write(at(homes_, unit).offset, memory(buffer, unit));
}

/// What was updated last is still in its buffer, and perhaps not in the file yet.
Arrival SwappedShards::bring(int unit, const Tensor& to, Event vacant) {
  const int slot = at(slots_.of_unit, unit);
  Buffer& buffer = at(buffers_, slot);
  if (direct_) {
    direct_->land(slot);
    if (buffer.holder != unit) {
      direct_->read(slot, at(homes_, unit).offset, to, vacant);
      return Arrival::landing;
    }
  }
  const Tensor shard = look(unit);
  device_.wait(Stream::to_device, vacant);
  device_.send(to, shard);
  device_.record(buffer.sent, Stream::to_device);
  return Arrival::enqueued;
}

void SwappedShards::land(int unit) {
  if (direct_) direct_->land(at(slots_.of_unit, unit));
}

void SwappedShards::store(int unit, const Tensor& from, Event written) {
  if (direct_) {
    vacate(buffer_of(unit));
    return direct_->write(at(homes_, unit).offset, from, written);
  }
  fetch_shard(device_, create(unit), from, written);
  keep(unit);
}

void SwappedShards::expect(int unit, bool changes) {
  if (!direct_ || changes) hold(unit);
}

void SwappedShards::use(const Tensor& slot) {
  if (direct_) direct_->use(slot);
}

/// Sees to it that a unit is in its buffer, or on its way there.
SwappedShards::Buffer& SwappedShards::hold(int unit) {
  Buffer& buffer = buffer_of(unit);
  if (buffer.holder == unit) return buffer;
  vacate(buffer);
  buffer.holder = unit;
  if (host_.swap == nullptr) return buffer;
  buffer.reads = true;
  buffer.transfer = host_.swap->read(at(homes_, unit).offset, memory(buffer, unit));
  return buffer;
}

/// Until neither the disk nor the device does anything with it.
void SwappedShards::vacate(Buffer& buffer) {
  wait(buffer);
  device_.await(buffer.sent);
  buffer.holder = -1;
}

void SwappedShards::wait(Buffer& buffer) {
  if (buffer.transfer != nullptr) host_.swap->wait(buffer.transfer);
  buffer.transfer = nullptr;
  buffer.reads = false;
}

void SwappedShards::settle() {
  for (Buffer& buffer : buffers_) wait(buffer);
}

}  // namespace

std::unique_ptr<HostShards> make_swapped_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                const Sharding& sharding, DType dtype, bool tied,
                                                bool direct) {
  return std::make_unique<SwappedShards>(runtime, units, sharding, dtype, tied, direct);
}

}  // namespace shardplan::validator
