#include "simulator/free_blocks.h"

#include <algorithm>
#include <cassert>

namespace shardplan {
namespace {

constexpr std::size_t kWord = 64;

using Entries = std::vector<FreeBlocks::Entry>;

/// Where `address` is or belongs. Mostly that is the end: what was freed last is taken first.
Entries::iterator place_in(Entries& same, std::int64_t address) {
  if (same.empty() || same.back().address > address) return same.end();
  if (same.back().address == address) return same.end() - 1;
  return std::lower_bound(
      same.begin(), same.end(), address,
      [](const FreeBlocks::Entry& entry, std::int64_t a) { return entry.address > a; });
}

}  // namespace

/// The first of sizes_ that is not smaller.
std::size_t FreeBlocks::place_of(std::int64_t size) const {
  const auto at = std::lower_bound(sizes_.begin(), sizes_.end(), size,
                                   [](const Size& of, std::int64_t s) { return of.size < s; });
  return static_cast<std::size_t>(at - sizes_.begin());
}

/// The list of `size`, if it was asked for lately.
FreeBlocks::ListId FreeBlocks::find(std::int64_t size) {
  const ListId known = recent(size);
  return known != kNoList && lists_[known].size == size ? known : kNoList;
}

/// The list of a size that was not asked for lately, made where there is none.
FreeBlocks::ListId FreeBlocks::add_list(std::int64_t size) {
  const std::size_t place = place_of(size);
  if (place < sizes_.size() && sizes_[place].size == size) return recent(size) = sizes_[place].list;
  if (sizes_.size() >= kManySizes)
    for (const std::size_t near : {place, place - 1}) {
      if (near >= sizes_.size() || !lists_[sizes_[near].list].entries.empty()) continue;
      sizes_[near].size = lists_[sizes_[near].list].size = size;
      return recent(size) = sizes_[near].list;
    }
  const auto list = static_cast<ListId>(lists_.size());
  sizes_.insert(sizes_.begin() + static_cast<std::ptrdiff_t>(place), {size, list});
  lists_.push_back({size, place, {}});
  filled_.resize(sizes_.size() / kWord + 1, 0);
  open_bit(place);
  for (std::size_t i = place + 1; i < sizes_.size(); ++i) lists_[sizes_[i].list].place = i;
  return recent(size) = list;
}

/// Moves the bits from `place` on up by one, and leaves that one empty.
void FreeBlocks::open_bit(std::size_t place) {
  const std::size_t first = place / kWord;
  for (std::size_t i = filled_.size() - 1; i > first; --i)
    filled_[i] = filled_[i] << 1 | filled_[i - 1] >> (kWord - 1);
  const std::uint64_t below = (std::uint64_t{1} << (place % kWord)) - 1;
  filled_[first] = (filled_[first] & below) | (filled_[first] & ~below) << 1;
}

void FreeBlocks::note_emptied(const List& list) {
  if (list.entries.empty())
    filled_[list.place / kWord] &= ~(std::uint64_t{1} << (list.place % kWord));
}

FreeBlocks::ListId FreeBlocks::insert(std::int64_t size, const Entry& entry) {
  ListId id = find(size);
  if (id == kNoList) id = add_list(size);
  List& list = lists_[id];
  const auto place = place_in(list.entries, entry.address);
  if (place == list.entries.end()) {
    list.entries.push_back(entry);
  } else {
    list.entries.insert(place, entry);
  }
  filled_[list.place / kWord] |= std::uint64_t{1} << (list.place % kWord);
  return id;
}

void FreeBlocks::erase(ListId id, const Entry& entry) {
  List& list = lists_[id];
  const auto place = place_in(list.entries, entry.address);
  assert(place != list.entries.end() && place->block == entry.block);
  list.entries.erase(place);
  note_emptied(list);
}

FreeBlocks::BlockId FreeBlocks::take_best_fit(std::int64_t size) {
  const ListId own = find(size);
  std::size_t place = own != kNoList ? lists_[own].place : place_of(size);
  if (place == sizes_.size()) return kNone;
  std::uint64_t word = filled_[place / kWord] >> (place % kWord) << (place % kWord);
  for (place /= kWord; word == 0; word = filled_[place])
    if (++place == filled_.size()) return kNone;
  place = place * kWord + static_cast<std::size_t>(std::countr_zero(word));
  List& list = lists_[sizes_[place].list];
  const BlockId id = list.entries.back().block;
  list.entries.pop_back();
  note_emptied(list);
  return id;
}

}  // namespace shardplan
