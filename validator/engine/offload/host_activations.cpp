#include "engine/offload/host_activations.h"

#include <fmt/format.h>

namespace shardplan::validator {

HostActivations::HostActivations(Runtime& runtime, std::int64_t blocks, std::int64_t bytes)
    : device_(runtime.device), blocks_(blocks), places_(kPlaces) {
  for (std::int64_t i = 0; !stays(i); ++i)
    homes_.push_back(runtime.host->pinned.allocate(fmt::format("kept.{}", i), Category::activations,
                                                   DType::i8, {bytes}));
  for (Place& place : places_) {
    place.ready = device_.new_event();
    place.moved = device_.new_event();
  }
}

void HostActivations::begin_forward(std::int64_t block) {
  // The first blocks' places are vacant: the backward pass before has read what came to them.
  if (block >= kPlaces) device_.wait(Stream::compute, place_of(block).moved);
}

void HostActivations::end_forward(std::int64_t block) {
  if (stays(block)) return;
  const Place& place = place_of(block);
  device_.record(place.ready, Stream::compute);
  device_.wait(Stream::to_host, place.ready);
  device_.fetch(at(homes_, block), place.flat);
  device_.record(place.moved, Stream::to_host);
}

void HostActivations::begin_backward(std::int64_t block) {
  if (!stays(block)) device_.wait(Stream::compute, place_of(block).moved);
}

void HostActivations::end_backward(std::int64_t block) {
  if (block < kPlaces) return;
  const Place& place = place_of(block);
  device_.record(place.ready, Stream::compute);
  device_.wait(Stream::to_device, place.ready);
  device_.send(place.flat, at(homes_, block - kPlaces));
  device_.record(place.moved, Stream::to_device);
}

}  // namespace shardplan::validator
