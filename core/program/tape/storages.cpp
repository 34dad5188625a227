#include "program/tape/storages.h"

#include <cassert>

#include "base/checked.h"

namespace shardplan::tape {

StorageId Storages::add(const Storage& storage) {
  storages_.push_back(storage);
  return static_cast<StorageId>(storages_.size() - 1);
}

StorageId Storages::allocate(std::int64_t bytes, Category category, Stream pool) {
  const auto next = static_cast<std::int32_t>(storages_.size());
  const StorageId id =
      add({round_up(bytes, kAllocationUnit), 1, next + kept_slots_, category, false, pool});
  write(TapeEvent::Kind::alloc, of(id));
  return id;
}

StorageId Storages::allocate_later(std::int64_t bytes, Category category, Stream pool) {
  const auto next = static_cast<std::int32_t>(storages_.size());
  const StorageId id =
      add({round_up(bytes, kAllocationUnit), 1, next + kept_slots_, category, false, pool});
  at(id).after_first_step = true;
  write(TapeEvent::Kind::alloc, of(id));
  return id;
}

StorageId Storages::allocate_pieces(std::int64_t bytes, Category category, std::int64_t pieces) {
  const auto next = static_cast<std::int32_t>(storages_.size());
  const std::int64_t each = round_up(ceil_div(bytes, pieces), kAllocationUnit);
  const StorageId id = add({each, 1, next + kept_slots_, category});
  at(id).pieces = pieces;
  write(TapeEvent::Kind::alloc, of(id));
  return id;
}

StorageId Storages::allocate_kept(std::int64_t bytes, Category category) {
  const StorageId id = add({round_up(bytes, kAllocationUnit), 1, kept_++, category});
  if (mode_ != TapeMode::redo) write(TapeEvent::Kind::alloc, of(id));
  if (mode_ == TapeMode::discard) ref(id);
  return id;
}

StorageId Storages::adopt(std::int64_t bytes, std::int32_t slot, Category category, Stream pool) {
  return add({bytes, 1, slot, category, false, pool});
}

StorageId Storages::allocate_exported(std::int64_t bytes, std::int32_t slot, Category category) {
  const StorageId id = add({round_up(bytes, kAllocationUnit), 1, slot, category, true});
  write(TapeEvent::Kind::alloc, of(id));
  return id;
}

void Storages::unref(StorageId id) {
  if (id == kExternal) return;
  Storage& s = at(id);
  if (--s.refs == 0 && !s.exported) write(TapeEvent::Kind::free, s);
}

TapeEvent Storages::free_event(StorageId id) const {
  const Storage& s = of(id);
  assert(s.pieces == 1 && "more than one free");
  return {TapeEvent::Kind::free, s.category, s.slot, s.bytes, s.pool, s.used_on,
          s.after_first_step};
}

}  // namespace shardplan::tape
