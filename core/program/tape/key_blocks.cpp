#include "program/tape/key_blocks.h"

#include "program/tape/kernels.h"

namespace shardplan::tape {
namespace {

/// Bytes of a rank's tensors in the type that attention computes in, and of the sums over blocks,
/// which are fp32.
struct BlockSizes {
  DType type;
  std::int64_t queries, keys;         ///< keys: with values
  std::int64_t query_sums, key_sums;  ///< the same in fp32

  BlockSizes(const GraphView& view, const Op& op)
      : type(view.read_type(op, 0)),
        queries(view.bytes_of(op.in[0], type)),
        keys(view.bytes_of(op.in[1], type) + view.bytes_of(op.in[2], type)),
        query_sums(view.bytes_of(op.in[0], DType::f32)),
        key_sums(view.bytes_of(op.in[1], DType::f32) + view.bytes_of(op.in[2], DType::f32)) {}
};

bool gathers_all(const Op& op) {
  return op.exchange.forward == Exchange::all_gather;
}

StorageId buffer(Parts& p, std::int64_t bytes) {
  return p.storages.allocate(bytes, Category::communication_buffers);
}

/// Keys and values are gathered once, or passed on for each block but the last.
void send_keys(Parts& p, const Op& op, const BlockSizes& size) {
  const std::int64_t all = checked_mul(size.keys, op.key_blocks);
  p.writer.exchange(op.exchange.forward, op.exchange.group, gathers_all(op) ? all : size.keys,
                    ExchangeStart::ahead);
}

Kernel passes(double bytes, std::int64_t calls, Issue issue) {
  Kernel kernel = memory_kernel(KernelKind::elementwise, issue, DType::f32,
                                bytes / static_cast<double>(calls), bytes / 4);
  kernel.calls = static_cast<std::int32_t>(calls);
  return kernel;
}

}  // namespace

void attend_blocks_forward(Parts& p, const Op& op) {
  const BlockSizes size(p.view, op);
  const std::int64_t merges = op.key_blocks - 1;
  const StorageId contiguous = p.temporary_bytes(size.keys);
  const StorageId sent = buffer(p, size.keys);  // torch.cat of both
  const StorageId arrived =
      buffer(p, gathers_all(op) ? checked_mul(size.keys, op.key_blocks) : size.keys);
  send_keys(p, op, size);
  const StorageId sum = p.temporary_bytes(size.query_sums);
  p.storages.unref(contiguous);
  p.storages.unref(sent);
  const bool passes_on = !gathers_all(op) && merges > 1;
  const StorageId next_sent = passes_on ? buffer(p, size.keys) : kExternal;
  const StorageId next = passes_on ? buffer(p, size.keys) : kExternal;
  // out - sigmoid(lse' - lse) * (out - out'), the block's result in fp32 first.
  const StorageId block = p.temporary_bytes(size.query_sums);
  const StorageId difference = p.temporary_bytes(size.query_sums);
  const StorageId product = p.temporary_bytes(size.query_sums);
  p.storages.unref(difference);
  const StorageId merged = p.temporary_bytes(size.query_sums);
  for (const StorageId id : {product, block, sum, merged, next_sent, next, arrived})
    p.storages.unref(id);
  constexpr std::int64_t kCalls = 7, kPasses = 13;  // of a merge, over elements in fp32
  p.writer.launch(passes(static_cast<double>(merges * kPasses * size.query_sums), merges * kCalls,
                         Issue::nested));
}

BlocksBackward::BlocksBackward(Parts& p, const Op& op) : p_(p) {
  const BlockSizes size(p.view, op);
  const auto keep = [&](StorageId id) { alive_.push_back(id); };
  keep(p.temporary_bytes(size.query_sums));
  keep(p.temporary_bytes(size.key_sums));
  const StorageId contiguous = p.temporary_bytes(size.keys);
  keep(buffer(p, size.keys));
  keep(buffer(p, gathers_all(op) ? checked_mul(size.keys, op.key_blocks) : 2 * size.keys));
  send_keys(p, op, size);
  // A block's own gradients stay until the next block's are made.
  keep(p.temporary_bytes(size.queries + size.keys));
  // The sums of keys and values go round in fp32, and come home in the last round.
  keep(buffer(p, size.key_sums));
  keep(buffer(p, size.key_sums));
  p.storages.unref(contiguous);
  const std::int64_t rounds = op.key_blocks;
  p.writer.exchange(Exchange::ring, op.exchange.group,
                    checked_mul(size.key_sums, rounds) / (rounds - 1), ExchangeStart::ahead);
  constexpr std::int64_t kCalls = 8;
  const std::int64_t moved = 3 * size.query_sums + 5 * size.key_sums;
  p.writer.launch(passes(static_cast<double>(rounds * moved), rounds * kCalls, Issue::autograd));
  p.writer.wait();
}

void BlocksBackward::release() {
  for (const StorageId id : alive_) p_.storages.unref(id);
}

}  // namespace shardplan::tape
