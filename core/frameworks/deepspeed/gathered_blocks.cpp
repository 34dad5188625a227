#include "frameworks/deepspeed/gathered_blocks.h"

#include <utility>

namespace shardplan {
namespace {

// Parts of a bucket that have names.
constexpr int kReceived = 0, kWidened = 1, kSent = 2, kParts = 3;

/// Whether the tensors are made when they have arrived, out of what was received.
bool made_late(const GatherBytes& bytes) { return bytes.received > 0 || bytes.each_widened; }

}  // namespace

GatheredBlocks::GatheredBlocks(const Stage3& z, const TensorTable& tensors, Steps steps)
    : z_(z),
      tensors_(tensors),
      steps_(steps),
      first_name_(detail::slot_base(z.run, z.run.segments.size())),
      b_(part_),
      held_(static_cast<std::size_t>(tensors.size())) {}

std::int32_t GatheredBlocks::name(std::size_t bucket, int part) const {
  return first_name_ + tensors_.size() + static_cast<std::int32_t>(bucket) * kParts + part;
}

void GatheredBlocks::alloc(Category category, std::int64_t bytes, std::int32_t name) {
  b_.alloc_named(category, bytes, name, z_.gather_pool());
}

void GatheredBlocks::free(Category category, std::int64_t bytes, std::int32_t name) {
  b_.free_named(category, bytes, name, z_.gather_pool());
}

/// partition_parameters.py _all_gather_dtype and _all_gather_sequential: ds_tensor.to(device), in
/// the gather's stream.
std::vector<std::int64_t> GatheredBlocks::brought_shards(const GatherSet& set) const {
  std::vector<std::int64_t> bytes;
  const bool quantized = set.stored || z_.zero.quantized_weights;
  if (!z_.offload_param || quantized || z_.ranks_of(set) == 1) return bytes;
  for (const ParameterId p : set.ids)
    bytes.push_back(checked_mul(z_.e.b, z_.gather.shard_of(p, set.secondary)));
  return bytes;
}

void GatheredBlocks::make(const GatherBucket& bucket) {
  for (const TensorId t : bucket.tensors) {
    Held& held = held_[static_cast<std::size_t>(t)];
    ++held.blocks;
    held.from_forward = !backward_;
    alloc(Category::gathered_parameters, z_.gather.gathered_bytes(tensors_.parameter(t)),
          first_name_ + t);
  }
}

/// Shards on the host come first. Several are copied into the buffer of all ranks and go; one is
/// what the gather sends, which it holds until it has arrived.
void GatheredBlocks::gather(const GatherBucket& bucket, std::size_t number) {
  const GatherBytes bytes = z_.gather.bytes_of(bucket.set);
  const std::vector<std::int64_t> brought = brought_shards(bucket.set);
  alloc(Category::gathered_parameters, bytes.received, name(number, kReceived));
  if (brought.size() > 1) {
    for (const std::int64_t shard : brought)
      b_.alloc(Category::communication_buffers, shard, z_.gather_pool());
    for (const std::int64_t shard : brought)
      b_.free(Category::communication_buffers, shard, z_.gather_pool());
  }
  if (!made_late(bytes)) make(bucket);
  if (brought.size() == 1)
    alloc(Category::communication_buffers, brought.front(), name(number, kSent));
  alloc(Category::communication_buffers, bytes.early, name(number, kReceived));
  b_.transient(Category::communication_buffers, bytes.copies, z_.gather_pool());
  alloc(Category::communication_buffers, bytes.own, name(number, kSent));
}

void GatheredBlocks::arrive(const GatherBucket& bucket, std::size_t number) {
  const GatherBytes bytes = z_.gather.bytes_of(bucket.set);
  const std::vector<std::int64_t> brought = brought_shards(bucket.set);
  if (brought.size() == 1)
    free(Category::communication_buffers, brought.front(), name(number, kSent));
  free(Category::communication_buffers, bytes.own, name(number, kSent));
  alloc(Category::gathered_parameters, bytes.widened, name(number, kWidened));
  if (made_late(bytes)) make(bucket);
  b_.transient(Category::gathered_parameters, bytes.cast, z_.gather_pool());
  free(Category::communication_buffers, bytes.early, name(number, kReceived));
}

void GatheredBlocks::settle(const GatherBucket& bucket, std::size_t number) {
  const GatherBytes bytes = z_.gather.bytes_of(bucket.set);
  free(Category::gathered_parameters, bytes.received, name(number, kReceived));
  free(Category::gathered_parameters, bytes.widened, name(number, kWidened));
}

void GatheredBlocks::drop(TensorId t) {
  --held_[static_cast<std::size_t>(t)].blocks;
  b_.free_named(Category::gathered_parameters,
                z_.gather.gathered_bytes(tensors_.parameter(t)), first_name_ + t,
                z_.gather_pool());
  part_.events.back().used_on = Stream::compute;
}

/// The kernels that were given until now still read what goes (free_param). What a node of the
/// graph refers to stays as long as the graph.
void GatheredBlocks::release(const std::vector<TensorId>& tensors) {
  for (const TensorId t : tensors)
    if (!held_[static_cast<std::size_t>(t)].from_forward ||
        !z_.nodes_hold(tensors_.parameter(t)))
      drop(t);
}

void GatheredBlocks::finish() {
  for (TensorId t = 0; t < tensors_.size(); ++t)
    while (held_[static_cast<std::size_t>(t)].blocks > 0) drop(t);
}

void GatheredBlocks::put(ProgramBuilder& b) {
  if (steps_ == Steps::first) {
    b.in_first_step(std::exchange(part_.events, {}));
    return;
  }
  for (Event& e : part_.events) {
    e.after_first_step = true;
    b.add(e);
  }
  part_.events.clear();
}

}  // namespace shardplan
