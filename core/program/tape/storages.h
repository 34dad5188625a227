// What lives during a run: storages with reference counts. Each that appears or goes is written
// down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/tape.h"
#include "program/tape/values.h"
#include "program/tape/writer.h"

namespace shardplan::tape {

struct Storage {
  std::int64_t bytes = 0;  ///< in whole allocation units
  std::int32_t refs = 0;
  std::int32_t slot = 0;  ///< the name that events give it
  Category category = Category::activations;
  bool exported = false;  ///< somebody else frees it, such as the next segment its input
  Stream pool = Stream::compute;
  Stream used_on = Stream::compute;  ///< the allocator waits for it behind the last reference
  std::int64_t pieces = 1;           ///< so many blocks, each of these bytes
  bool after_first_step = false;     ///< the first step does without it
};

class Storages {
 public:
  /// `kept_slots`: how many allocate_kept() will take; their slots are the first ones.
  Storages(TapeWriter& writer, TapeMode mode, std::int32_t kept_slots)
      : writer_(writer), mode_(mode), kept_slots_(kept_slots) {}
  void reserve(std::size_t count) { storages_.reserve(count); }

  /// A new one with one reference.
  StorageId allocate(std::int64_t bytes, Category category, Stream pool = Stream::compute);
  /// The same, but the first step does without it.
  StorageId allocate_later(std::int64_t bytes, Category category, Stream pool);
  /// One of so many blocks, which go together; nothing but references frees them.
  StorageId allocate_pieces(std::int64_t bytes, Category category, std::int64_t pieces);
  /// One that a checkpointed forward pass (TapeMode::discard) leaves behind, and that the
  /// recomputation, which makes more tensors, finds under the same slot.
  StorageId allocate_kept(std::int64_t bytes, Category category);
  /// One that is there already, in a slot that others know. `bytes`: in whole units.
  StorageId adopt(std::int64_t bytes, std::int32_t slot, Category category,
                  Stream pool = Stream::compute);
  /// A new one in such a slot, which outlives the run.
  StorageId allocate_exported(std::int64_t bytes, std::int32_t slot, Category category);

  // Both ignore kExternal.
  void ref(StorageId id) {
    if (id != kExternal) ++at(id).refs;
  }
  void unref(StorageId id);
  void set_exported(StorageId id) { at(id).exported = true; }
  void set_used_on(StorageId id, Stream stream) { at(id).used_on = stream; }

  const Storage& of(StorageId id) const { return storages_[static_cast<std::size_t>(id)]; }
  /// Somebody else refers to it beside the caller.
  bool is_shared(StorageId id) const { return id == kExternal || of(id).refs > 1; }
  /// What frees `id`, for whoever does.
  TapeEvent free_event(StorageId id) const;
  std::int32_t slots() const { return kept_slots_ + static_cast<std::int32_t>(storages_.size()); }

 private:
  Storage& at(StorageId id) { return storages_[static_cast<std::size_t>(id)]; }
  StorageId add(const Storage& storage);
  void write(TapeEvent::Kind kind, const Storage& s) {
    for (std::int64_t i = 0; i < s.pieces; ++i)
      writer_.emit({kind, s.category, s.slot, s.bytes, s.pool, s.used_on, s.after_first_step});
  }

  TapeWriter& writer_;
  TapeMode mode_;
  std::int32_t kept_slots_;
  std::int32_t kept_ = 0;  ///< of them used
  std::vector<Storage> storages_;
};

}  // namespace shardplan::tape
