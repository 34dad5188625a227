// The free blocks of one pool, by size: what a request takes is the smallest that is large enough,
// and of several such the one at the lowest address.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardplan {

/// A network has a few dozen sizes of blocks, each used up and made again many thousand times. So
/// sizes keep their lists, and a request finds its own without a search. What cutting leaves over
/// has hundreds more, mostly once: they take over an empty list between the same neighbours.
class FreeBlocks {
 public:
  using BlockId = std::int32_t;
  static constexpr BlockId kNone = -1;
  using ListId = std::uint32_t;

  struct Entry {
    std::int64_t address = 0;
    BlockId block = kNone;
  };

  FreeBlocks() { recent_.fill(kNoList); }

  /// Returns the list that the block is on now.
  ListId insert(std::int64_t size, const Entry& entry);
  void erase(ListId list, const Entry& entry);
  /// Takes out the block for a request of `size`; kNone when every block is smaller.
  BlockId take_best_fit(std::int64_t size);

  /// Calls visit(block) by rising size and address.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Size& of : sizes_) {
      const std::vector<Entry>& same = lists_[of.list].entries;
      for (auto entry = same.rbegin(); entry != same.rend(); ++entry) visit(entry->block);
    }
  }

  /// Takes out every block for which gone(block) holds, asked by rising size and falling address.
  template <typename Gone>
  void erase_if(Gone&& gone) {
    for (const Size& of : sizes_) {
      std::erase_if(lists_[of.list].entries, [&](const Entry& entry) { return gone(entry.block); });
      note_emptied(lists_[of.list]);
    }
  }

 private:
  static constexpr ListId kNoList = std::numeric_limits<ListId>::max();
  static constexpr std::size_t kRecent = 256;
  static constexpr std::size_t kManySizes = 128;

  struct List {
    std::int64_t size = 0;
    std::size_t place = 0;  ///< in sizes_
    /// By falling address: the lowest is taken first, and layers free theirs from the highest on.
    std::vector<Entry> entries;
  };
  struct Size {
    std::int64_t size = 0;
    ListId list = kNoList;
  };

  /// Where a size that was asked for lately has its list.
  ListId& recent(std::int64_t size) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    return recent_[static_cast<std::uint64_t>(size) * kSpread >>
                   (64 - std::bit_width(kRecent - 1))];
  }
  ListId find(std::int64_t size);
  ListId add_list(std::int64_t size);
  std::size_t place_of(std::int64_t size) const;
  void open_bit(std::size_t place);
  void note_emptied(const List& list);

  std::vector<List> lists_;
  std::vector<Size> sizes_;            ///< of all lists, rising
  std::vector<std::uint64_t> filled_;  ///< a bit a place of sizes_: its list is not empty
  std::array<ListId, kRecent> recent_{};
};

}  // namespace shardplan
