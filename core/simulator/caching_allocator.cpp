#include "simulator/caching_allocator.h"

#include <algorithm>
#include <cassert>

#include "base/checked.h"
#include "base/units.h"

namespace shardplan {
namespace {

constexpr std::int64_t kUnit = 512;    ///< every block is a multiple of it
constexpr std::int64_t kSmall = kMiB;  ///< the largest block of the small pool
constexpr std::int64_t kSmallSegment = 2 * kMiB;
constexpr std::int64_t kLargeSegment = 20 * kMiB;
constexpr std::int64_t kOwnSegment = 10 * kMiB;  ///< from here on a segment for one request
constexpr std::int64_t kRoundSegment = 2 * kMiB;

constexpr bool is_large(std::size_t pool) {
  return pool % 2 == 1;
}

constexpr std::size_t pool_for(std::int64_t size, Stream stream) {
  return 2 * static_cast<std::size_t>(stream) + (size <= kSmall ? 0 : 1);
}

/// A segment without a live block is the driver's at once; none grows.
constexpr bool keeps_nothing(std::size_t pool) {
  return pool / 2 == static_cast<std::size_t>(Stream::engine);
}

/// Graphs that are there will use its segments again (c10/cuda/CUDACachingAllocator.cpp,
/// release_cached_blocks: of private pools only those that no graph holds).
constexpr bool belongs_to_graphs(std::size_t pool) {
  return pool / 2 == static_cast<std::size_t>(Stream::graphs);
}

}  // namespace

std::int64_t CachingAllocator::block_size(std::int64_t bytes) {
  return std::max(kUnit, round_up(bytes, kUnit));
}

std::int64_t CachingAllocator::segment_size(std::int64_t block_size) {
  if (block_size <= kSmall) return kSmallSegment;
  if (block_size < kOwnSegment) return kLargeSegment;
  return round_up(block_size, kRoundSegment);
}

CachingAllocator::BlockId CachingAllocator::new_block(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  at(id) = block;
  return id;
}

void CachingAllocator::insert(BlockId id) {
  Block& block = at(id);
  block.list = pool_of(block).insert(block.size, {block.address, id});
}

void CachingAllocator::erase(BlockId id) {
  const Block& block = at(id);
  pool_of(block).erase(block.list, {block.address, id});
}

/// Counts `bytes` as granted by the driver, if it has them.
bool CachingAllocator::grant(std::int64_t bytes) {
  if (bytes > options_.limit - reserved_) return false;
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  return true;
}

CachingAllocator::BlockId CachingAllocator::grow(std::size_t pool, std::int64_t size) {
  if (options_.expandable_segments && !keeps_nothing(pool)) return grow_expandable(pool, size);
  const std::int64_t segment = segment_size(size);
  if (!grant(segment)) return kNone;
  Block block;
  next_address_ -= segment;
  block.address = next_address_;
  block.size = segment;
  block.pool = static_cast<std::uint8_t>(pool);
  return new_block(block);
}

/// Maps pages behind the last block of the pool's one segment; a free last block becomes part of
/// the result.
CachingAllocator::BlockId CachingAllocator::grow_expandable(std::size_t pool, std::int64_t size) {
  constexpr std::int64_t kReach = kLargeSegment << 35;  // of a segment: page-aligned, never full
  const BlockId last = last_[pool];
  const bool extend = last != kNone && !at(last).live;
  const std::int64_t missing = extend ? size - at(last).size : size;
  const std::int64_t pages = round_up(missing, is_large(pool) ? kLargeSegment : kSmallSegment);
  if (!grant(pages)) return kNone;
  if (extend) {
    erase(last);
    at(last).size += pages;
    return last;
  }
  Block block;
  block.address =
      last != kNone ? at(last).address + at(last).size : static_cast<std::int64_t>(pool) * kReach;
  block.size = pages;
  block.previous = last;
  block.pool = static_cast<std::uint8_t>(pool);
  const BlockId id = new_block(block);
  if (last != kNone) at(last).next = id;
  last_[pool] = id;
  return id;
}

/// Keeps the first `size` bytes of `id` and makes a free block of the rest.
void CachingAllocator::split(BlockId id, std::int64_t size) {
  Block rest = at(id);
  rest.address += size;
  rest.size -= size;
  rest.previous = id;
  rest.live = false;
  const BlockId rest_id = new_block(rest);
  if (rest.next != kNone) at(rest.next).previous = rest_id;
  at(id).next = rest_id;
  at(id).size = size;
  if (last_[rest.pool] == id) last_[rest.pool] = rest_id;
  insert(rest_id);
}

CachingAllocator::BlockId CachingAllocator::try_allocate(std::int64_t bytes, Stream stream) {
  const std::int64_t size = block_size(bytes);
  const std::size_t pool = pool_for(size, stream);
  BlockId id = free_[pool].take_best_fit(size);
  if (id == kNone) id = grow(pool, size);
  return id == kNone ? kNone : take(pool, id, size);
}

CachingAllocator::BlockId CachingAllocator::take(std::size_t pool, BlockId id, std::int64_t size) {
  const std::int64_t rest = at(id).size - size;
  const bool cut = is_large(pool) && !options_.expandable_segments ? rest > kSmall : rest >= kUnit;
  if (cut) split(id, size);
  at(id).live = true;
  allocated_ += at(id).size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return id;
}

CachingAllocator::BlockId CachingAllocator::allocate(std::int64_t bytes, Stream stream) {
  const BlockId id = try_allocate(bytes, stream);
  return id != kNone ? id : allocate_anew(bytes, stream);
}

CachingAllocator::BlockId CachingAllocator::allocate_anew(std::int64_t bytes, Stream stream) {
  ++retries_;
  empty_cache();
  const std::int64_t size = block_size(bytes);
  const std::size_t pool = pool_for(size, stream);
  const BlockId id = grow(pool, size);
  return id == kNone ? kNone : take(pool, id, size);
}

void CachingAllocator::merge_into(BlockId id, BlockId neighbour) {
  if (neighbour == kNone || at(neighbour).live) return;
  erase(neighbour);
  Block& block = at(id);
  const Block& other = at(neighbour);
  if (block.previous == neighbour) {
    block.address = other.address;
    block.previous = other.previous;
    if (block.previous != kNone) at(block.previous).next = id;
  } else {
    block.next = other.next;
    if (block.next != kNone) at(block.next).previous = id;
  }
  block.size += other.size;
  if (last_[block.pool] == neighbour) last_[block.pool] = id;
  unused_.push_back(neighbour);
}

void CachingAllocator::free(BlockId id) {
  set_aside(id);
  give_back(id);
}

void CachingAllocator::set_aside(BlockId id) {
  assert(at(id).live);
  allocated_ -= at(id).size;
}

void CachingAllocator::give_back(BlockId id) {
  at(id).live = false;
  merge_into(id, at(id).previous);
  merge_into(id, at(id).next);
  const bool whole = at(id).previous == kNone && at(id).next == kNone;
  if (whole && keeps_nothing(at(id).pool))
    release(id);
  else
    insert(id);
}

/// A free block that is a whole segment.
void CachingAllocator::release(BlockId id) {
  reserved_ -= at(id).size;
  unused_.push_back(id);
}

/// Unmaps the whole pages inside free blocks. What is unmapped in the middle of a segment is a hole
/// that nothing is put into any more: there are always addresses behind the last block.
void CachingAllocator::release_pages(std::size_t pool) {
  const std::int64_t page = is_large(pool) ? kLargeSegment : kSmallSegment;
  std::vector<BlockId> all;
  free_[pool].for_each([&](BlockId id) { all.push_back(id); });
  for (const BlockId id : all) release_whole_pages(pool, id, page);
}

void CachingAllocator::release_whole_pages(std::size_t pool, BlockId id, std::int64_t page) {
  const Block whole = at(id);
  const std::int64_t begin = round_up(whole.address, page);
  const std::int64_t end = (whole.address + whole.size) / page * page;
  if (end <= begin) return;
  reserved_ -= end - begin;
  erase(id);
  BlockId before = kNone, after = kNone;
  if (begin > whole.address) {
    Block part = whole;
    part.size = begin - whole.address;
    part.next = kNone;
    before = new_block(part);
    if (part.previous != kNone) at(part.previous).next = before;
    insert(before);
  } else if (whole.previous != kNone) {
    at(whole.previous).next = kNone;
  }
  if (end < whole.address + whole.size) {
    Block part = whole;
    part.address = end;
    part.size = whole.address + whole.size - end;
    part.previous = kNone;
    after = new_block(part);
    if (part.next != kNone) at(part.next).previous = after;
    insert(after);
  } else if (whole.next != kNone) {
    at(whole.next).previous = kNone;
  }
  if (last_[pool] == id)
    last_[pool] = after != kNone ? after : before != kNone ? before : whole.previous;
  unused_.push_back(id);
}

void CachingAllocator::empty_cache() {
  for (std::size_t pool = 0; pool < free_.size(); ++pool) {
    if (belongs_to_graphs(pool)) continue;
    if (options_.expandable_segments && !keeps_nothing(pool)) {
      release_pages(pool);
      continue;
    }
    free_[pool].erase_if([&](BlockId id) {
      const Block& block = at(id);
      if (block.previous != kNone || block.next != kNone) return false;
      release(id);
      return true;
    });
  }
}

}  // namespace shardplan
