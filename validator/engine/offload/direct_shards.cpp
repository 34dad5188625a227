#include "engine/offload/direct_shards.h"

#include "engine/runtime.h"

namespace shardplan::validator {
namespace {

std::span<std::byte> place_of(const Tensor& x) {
  return {reinterpret_cast<std::byte*>(x.address), static_cast<std::size_t>(x.bytes())};
}

}  // namespace

void DirectShards::use(const Tensor& slot) {
  if (swap_ != nullptr) swap_->use(place_of(slot));
}

void DirectShards::read(int slot, std::int64_t offset, const Tensor& to, Event vacant) {
  if (swap_ == nullptr) return;
  device_.await(vacant);
  at(landing_, slot) = swap_->read(offset, place_of(to));
}

void DirectShards::land(int slot) {
  Transfer& transfer = at(landing_, slot);
  if (transfer != nullptr) swap_->wait(transfer);
  transfer = nullptr;
}

void DirectShards::write(std::int64_t offset, const Tensor& from, Event written) {
  if (swap_ == nullptr) return;
  device_.await(written);
  swap_->wait(swap_->write(offset, place_of(from)));
}

}  // namespace shardplan::validator
