// PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.11, default settings):
// which segments it asks the driver for and how it cuts them up. docs/explanation/allocator.md
// tells the rules.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "program/program.h"
#include "simulator/free_blocks.h"

namespace shardplan {

struct AllocatorOptions {
  bool expandable_segments = false;  ///< PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
  /// What the driver grants in all; beyond it cached segments are given back first.
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
};

class CachingAllocator {
 public:
  using BlockId = FreeBlocks::BlockId;
  static constexpr BlockId kNone = FreeBlocks::kNone;

  explicit CachingAllocator(const AllocatorOptions& options) : options_(options) {
    last_.fill(kNone);
  }

  /// A block of at least `bytes` from the pool of `stream`, or kNone when memory runs out.
  BlockId allocate(std::int64_t bytes, Stream stream = Stream::compute);
  /// The same without giving cached segments back: kNone, and nothing is changed, where they would
  /// have to be.
  BlockId try_allocate(std::int64_t bytes, Stream stream = Stream::compute);
  /// Gives every cached segment back, and asks the driver for one for this block: kNone when it has
  /// none. What is set aside must have been given back.
  BlockId allocate_anew(std::int64_t bytes, Stream stream);
  void free(BlockId block);
  /// A block that its owner has freed and a stream still works on: it counts no more, and stays
  /// where it is until give_back().
  void set_aside(BlockId block);
  void give_back(BlockId block);
  /// Gives back every segment without a live block, but those of a pool of CUDA graphs.
  void empty_cache();
  /// What the driver grants in all from now on; no less than is reserved.
  void set_limit(std::int64_t bytes) { options_.limit = bytes; }

  std::int64_t reserved() const { return reserved_; }
  std::int64_t peak_reserved() const { return peak_reserved_; }
  std::int64_t allocated() const { return allocated_; }
  std::int64_t peak_allocated() const { return peak_allocated_; }
  std::int64_t retries() const { return retries_; }  ///< times that cached segments were given back

  std::int64_t address_of_block(BlockId block) const { return at(block).address; }

  /// Bytes of the block for a request, and of the segment that is asked for when none fits.
  static std::int64_t block_size(std::int64_t bytes);
  static std::int64_t segment_size(std::int64_t block_size);

 private:
  struct Block {
    std::int64_t address = 0;
    std::int64_t size = 0;
    BlockId previous = kNone, next = kNone;  ///< neighbours in the segment
    FreeBlocks::ListId list = 0;             ///< of a free block
    std::uint8_t pool = 0;
    bool live = false;
  };

  Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  BlockId new_block(const Block& block);
  FreeBlocks& pool_of(const Block& block) { return free_[block.pool]; }
  void insert(BlockId id);
  void erase(BlockId id);
  BlockId grow(std::size_t pool, std::int64_t size);
  BlockId grow_expandable(std::size_t pool, std::int64_t size);
  bool grant(std::int64_t bytes);
  BlockId take(std::size_t pool, BlockId id, std::int64_t size);
  void split(BlockId id, std::int64_t size);
  void merge_into(BlockId id, BlockId neighbour);
  void release(BlockId id);
  void release_pages(std::size_t pool);
  void release_whole_pages(std::size_t pool, BlockId id, std::int64_t page);

  AllocatorOptions options_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;                ///< entries of blocks_ to use again
  std::array<FreeBlocks, 2 * kStreams> free_;  ///< by stream; small, then large
  std::array<BlockId, 2 * kStreams> last_;     ///< of each pool's one growing segment
  std::int64_t next_address_ = 0;
  std::int64_t reserved_ = 0, peak_reserved_ = 0;
  std::int64_t allocated_ = 0, peak_allocated_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace shardplan
