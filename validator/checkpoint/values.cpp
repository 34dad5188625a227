#include "checkpoint/values.h"

#include <algorithm>
#include <cstring>

#include "engine/offload/state_store.h"

namespace shardplan::validator {
namespace {

/// Where values are that no store has.
Tensor values_of(Trainer& trainer, const SavedTensor& saved) {
  switch (saved.kind) {
    case SavedAs::parameters:
      return trainer.weights().owned(saved.unit);
    case SavedAs::master:
      return trainer.states(saved.unit).master;
    case SavedAs::first_moment:
      return trainer.states(saved.unit).first_moment;
    case SavedAs::second_moment:
      return trainer.states(saved.unit).second_moment;
    case SavedAs::pending_gradient:
      return trainer.pending_gradient(saved.unit);
  }
  return {};
}

Tensor part_of(const BucketStates& states, SavedAs kind) {
  return kind == SavedAs::master         ? states.master
         : kind == SavedAs::first_moment ? states.first_moment
                                         : states.second_moment;
}

std::span<std::byte> memory_of(const Tensor& x) {
  return {reinterpret_cast<std::byte*>(x.data()), static_cast<std::size_t>(x.bytes())};
}

/// Calls visit(slice, first byte) for pieces of a tensor of at most kStagingBytes.
template <typename Visit>
void for_each_piece(const Tensor& x, Visit&& visit) {
  const std::int64_t size = size_of(x.dtype), most = kStagingBytes / size;
  for (std::int64_t first = 0; first < x.numel(); first += most)
    visit(x.slice(first, std::min(most, x.numel() - first)), first * size);
}

bool is_shard_on_host(const SavedTensor& saved) {
  return saved.on_host && saved.kind == SavedAs::parameters;
}

bool is_state_on_host(const SavedTensor& saved) {
  return saved.on_host && saved.kind != SavedAs::parameters &&
         saved.kind != SavedAs::pending_gradient;
}

/// The end of the states of one unit that begin with number `first`.
std::size_t end_of_states(const std::vector<SavedTensor>& tensors, std::size_t first) {
  std::size_t end = first;
  while (end < tensors.size() && tensors[end].unit == tensors[first].unit &&
         is_state_on_host(tensors[end]))
    ++end;
  return end;
}

}  // namespace

std::int64_t staging_bytes(const std::vector<SavedTensor>& tensors) {
  std::int64_t largest = 0;
  for (const SavedTensor& saved : tensors)
    if (!saved.on_host) largest = std::max(largest, saved.numel * size_of(saved.dtype));
  return std::min(largest, kStagingBytes);
}

void read_values(Trainer& trainer, const std::vector<SavedTensor>& tensors,
                 std::span<std::byte> staging, const ReadPiece& visit) {
  Backend& device = trainer.runtime().device;
  const auto read_states = [&](std::size_t first, std::size_t end) {
    StateStore& store = *trainer.host_states();
    for_each_bucket(tensors[first].numel, [&](std::int64_t bucket, const BucketRange& range) {
      const BucketStates states = store.look(tensors[first].unit, bucket);
      for (std::size_t t = first; t < end; ++t)
        visit(t, range.first * size_of(tensors[t].dtype),
              memory_of(part_of(states, tensors[t].kind)));
      store.let_go();
    });
  };
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (is_state_on_host(tensors[t])) {
      const std::size_t end = end_of_states(tensors, t);
      read_states(t, end);
      t = end - 1;
      continue;
    }
    const Tensor values = is_shard_on_host(tensors[t])
                              ? trainer.weights().shards()->look(tensors[t].unit)
                              : values_of(trainer, tensors[t]);
    for_each_piece(values, [&](const Tensor& piece, std::int64_t first) {
      if (tensors[t].on_host) return visit(t, first, memory_of(piece));
      const auto here = staging.first(static_cast<std::size_t>(piece.bytes()));
      device.download(here, piece);
      visit(t, first, here);
    });
  }
}

void write_values(Trainer& trainer, const std::vector<SavedTensor>& tensors,
                  const StoredBytes& stored) {
  Backend& device = trainer.runtime().device;
  const auto copy = [&](const Tensor& to, std::size_t t, std::int64_t first) {
    const auto from =
        stored(t).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(to.bytes()));
    if (tensors[t].on_host)
      std::memcpy(to.data(), from.data(), from.size());
    else
      device.upload(to, from);
  };
  const auto write_states = [&](std::size_t begin, std::size_t end) {
    StateStore& store = *trainer.host_states();
    for_each_bucket(tensors[begin].numel, [&](std::int64_t bucket, const BucketRange& range) {
      const BucketStates states = store.create(tensors[begin].unit, bucket);
      for (std::size_t t = begin; t < end; ++t)
        copy(part_of(states, tensors[t].kind), t, range.first * size_of(tensors[t].dtype));
      store.keep();
    });
  };
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (is_state_on_host(tensors[t])) {
      const std::size_t end = end_of_states(tensors, t);
      write_states(t, end);
      t = end - 1;
      continue;
    }
    HostShards* shards = is_shard_on_host(tensors[t]) ? trainer.weights().shards() : nullptr;
    for_each_piece(
        shards != nullptr ? shards->create(tensors[t].unit) : values_of(trainer, tensors[t]),
        [&](const Tensor& piece, std::int64_t first) { copy(piece, t, first); });
    if (shards != nullptr) shards->keep(tensors[t].unit);
    device.synchronize();  // what was uploaded may be gone afterwards
  }
}

}  // namespace shardplan::validator
