// Collectives among the ranks of one run, on the communication stream of this rank's backend.
//
// Every rank issues the same calls in the same order. The caller orders the streams: it makes the
// communication stream wait for the inputs before the call, and the compute stream for the results
// after it. Sums are taken in rank order, so that they do not depend on who computes them; NCCL's
// order is its own, but fixed for a given world.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "memory/tensor.h"

namespace shardplan::validator {

/// A tensor that goes to another rank, or comes from it.
struct Parcel {
  int peer = 0;
  Tensor tensor;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// x becomes the sum over ranks.
  virtual void all_reduce(const Tensor& x) = 0;
  /// shard: rank r's r-th part of the sum over ranks of full. May lie inside `full`, in its place.
  virtual void reduce_scatter(const Tensor& shard, const Tensor& full) = 0;
  /// full: the shards of all ranks in rank order. The shard may lie inside `full`, in its place.
  virtual void all_gather(const Tensor& full, const Tensor& shard) = 0;
  virtual void broadcast(const Tensor& x, int root) = 0;
  /// Opens the ways of all_to_all(). Every rank calls it at the same time, once.
  virtual void connect_all() = 0;
  /// Both are [blocks, ranks, ...] and do not overlap: part (b, r) of `from` goes to rank r, part
  /// (b, r) of `to` comes from rank r.
  virtual void all_to_all(const Tensor& to, const Tensor& from, std::int64_t blocks) = 0;
  /// Opens the ways of exchange() to the ranks after and before this one, in a ring. Every rank
  /// calls it at the same time, once.
  virtual void connect_neighbours() = 0;
  /// Sends and receives between neighbours, at the same time: it is over when all have arrived.
  /// Only the ranks that something goes to or comes from take part; what one sends another, that
  /// one receives in the same order.
  virtual void exchange(std::span<const Parcel> out, std::span<const Parcel> in) = 0;
  /// A communicator of those ranks of this one, in that order. Every rank calls it at the same
  /// time, with lists of the same length that share the ranks out. It lives no longer than this
  /// one, and ends with it when this one is aborted.
  virtual std::unique_ptr<Communicator> group(std::span<const int> members) = 0;
  /// Returns when all ranks have called it and their streams are empty.
  virtual void barrier() = 0;
  /// Makes every call that other ranks wait in, now and later, throw PeerFailure there.
  virtual void abort() noexcept = 0;
  /// Device memory that the communicator takes outside the arena.
  virtual std::int64_t overhead_bytes() const = 0;
};

}  // namespace shardplan::validator
