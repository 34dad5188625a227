#include "frameworks/deepspeed/gathered_blocks.h"

#include <utility>

namespace shardplan {
namespace {

// Parts of a bucket that have names.
constexpr int kReceived = 0, kWidened = 1, kSent = 2, kParts = 3;

/// Whether the tensors are made when they have arrived, out of what was received.
bool made_late(const GatherBytes& bytes) {
  return bytes.received > 0 || bytes.each_widened;
}

}  // namespace

GatheredBlocks::GatheredBlocks(const Stage3& z, Steps steps)
    : z_(z),
      steps_(steps),
      first_name_(detail::slot_base(z.run, z.run.segments.size())),
      b_(part_) {}

/// All layers' tensors of a parameter, in the order in which they were gathered for a pass.
std::int32_t GatheredBlocks::name(ParameterId id, bool for_backward) const {
  return first_name_ + kParts + 2 * id + (for_backward ? 1 : 0);
}

std::int32_t GatheredBlocks::name(int part) const {
  return first_name_ + part;
}

void GatheredBlocks::alloc(Category category, std::int64_t bytes, std::int32_t name) {
  b_.alloc_named(category, bytes, name, z_.gather_pool());
}

void GatheredBlocks::free(Category category, std::int64_t bytes, std::int32_t name) {
  b_.free_oldest(category, bytes, name, z_.gather_pool());
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

void GatheredBlocks::make(const GatherCall& call) {
  for (std::size_t i = 0; i < call.set.ids.size(); ++i)
    alloc(Category::gathered_parameters, z_.gather.gathered_bytes(call.set.ids[i]),
          name(call.set.ids[i], call.for_backward[i]));
}

/// Shards on the host come first. Several are copied into the buffer of all ranks and go; one is
/// what the gather sends, which it holds until it has arrived.
void GatheredBlocks::gather(const GatherCall& call) {
  const GatherBytes bytes = z_.gather.bytes_of(call.set);
  const std::vector<std::int64_t> brought = brought_shards(call.set);
  alloc(Category::gathered_parameters, bytes.received, name(kReceived));
  if (brought.size() > 1) {
    for (const std::int64_t shard : brought)
      b_.alloc(Category::communication_buffers, shard, z_.gather_pool());
    for (const std::int64_t shard : brought)
      b_.free(Category::communication_buffers, shard, z_.gather_pool());
  }
  if (!made_late(bytes)) make(call);
  if (brought.size() == 1) alloc(Category::communication_buffers, brought.front(), name(kSent));
  alloc(Category::communication_buffers, bytes.early, name(kReceived));
  b_.transient(Category::communication_buffers, bytes.copies, z_.gather_pool());
  alloc(Category::communication_buffers, bytes.own, name(kSent));
}

void GatheredBlocks::arrive(const GatherCall& call) {
  const GatherBytes bytes = z_.gather.bytes_of(call.set);
  const std::vector<std::int64_t> brought = brought_shards(call.set);
  if (brought.size() == 1) free(Category::communication_buffers, brought.front(), name(kSent));
  free(Category::communication_buffers, bytes.own, name(kSent));
  alloc(Category::gathered_parameters, bytes.widened, name(kWidened));
  if (made_late(bytes)) make(call);
  b_.transient(Category::gathered_parameters, bytes.cast, z_.gather_pool());
  free(Category::communication_buffers, bytes.early, name(kReceived));
}

void GatheredBlocks::settle(const GatherCall& call) {
  const GatherBytes bytes = z_.gather.bytes_of(call.set);
  free(Category::gathered_parameters, bytes.received, name(kReceived));
  free(Category::gathered_parameters, bytes.widened, name(kWidened));
}

/// The kernels that were given until now still read what goes (free_param). What a node of the
/// graph refers to stays as long as the graph. A pass lets tensors go in the order in which they
/// were gathered for it; what the forward pass left comes back to the backward pass newest first.
void GatheredBlocks::release(const ReleasedTensor& tensor, bool backward) {
  if (!tensor.for_backward && z_.nodes_hold(tensor.id)) return;
  const std::int64_t bytes = z_.gather.gathered_bytes(tensor.id);
  const std::int32_t of = name(tensor.id, tensor.for_backward);
  if (backward && !tensor.for_backward)
    b_.free_named(Category::gathered_parameters, bytes, of, z_.gather_pool());
  else
    b_.free_oldest(Category::gathered_parameters, bytes, of, z_.gather_pool());
  part_.events.back().used_on = Stream::compute;
}

void GatheredBlocks::drop_held() {
  for (const ParameterGroup& group : z_.model.groups)
    for (ParameterId id = group.first; id < group.first + group.count; ++id)
      for (std::int64_t layer = 0; z_.nodes_hold(id) && layer < group.repeat; ++layer)
        free(Category::gathered_parameters, z_.gather.gathered_bytes(id), name(id, false));
}

void GatheredBlocks::put(ProgramBuilder& b) {
  if (steps_ == Steps::first) {
    b.in_first_step(part_.events);
  } else {
    for (Event& e : part_.events) {
      e.first_step = 2;
      b.add(e);
    }
  }
  part_.events.clear();
}

}  // namespace shardplan
