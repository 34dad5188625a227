#include "storage/rates.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <random>

#include "memory/host_pages.h"
#include "storage/options.h"
#include "storage/room.h"
#include "storage/swap.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Ranges on their way at once, as buckets of a step are.
constexpr std::size_t kRanges = 4;
constexpr std::int64_t kRangeBytes = std::int64_t{32} << 20;

/// Buffers whose bytes no disk makes smaller.
class Buffers {
 public:
  Buffers() : pages_(kRanges * kRangeBytes, "what is read and written") {
    std::mt19937_64 random(1);
    const std::span<std::byte> all = pages_.span();
    for (std::size_t i = 0; i < all.size(); i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random();
      std::memcpy(&all[i], &word, sizeof word);
    }
  }
  std::span<std::byte> of(std::size_t range) const {
    constexpr auto kSize = static_cast<std::size_t>(kRangeBytes);
    return pages_.span().subspan(range * kSize, kSize);
  }

 private:
  HostPages pages_;
};

/// Range after range of the file, some of them being read and some written.
class RangeFlow {
 public:
  /// `reads`: of the buffers, how many read; the others write.
  RangeFlow(Swap& swap, const Buffers& buffers, std::size_t reads)
      : swap_(swap), buffers_(buffers), reads_(reads) {}

  /// At least `seconds` of it, or `most` bytes. Bytes a second.
  double run(double seconds, std::optional<std::int64_t> most = std::nullopt) {
    const auto start = Clock::now();
    std::array<Transfer, kRanges> transfers;
    for (std::size_t i = 0; i < kRanges; ++i) transfers[i] = begin(i);
    std::int64_t moved = 0;
    const auto goes_on = [&] {
      return most ? moved + static_cast<std::int64_t>(kRanges) * kRangeBytes <= *most
                  : seconds_since(start) < seconds;
    };
    for (std::size_t i = 0; goes_on(); i = (i + 1) % kRanges) {
      swap_.wait(transfers[i]);
      moved += kRangeBytes;
      transfers[i] = begin(i);
    }
    for (const Transfer& transfer : transfers) swap_.wait(transfer);
    moved += static_cast<std::int64_t>(kRanges) * kRangeBytes;
    return static_cast<double>(moved) / seconds_since(start);
  }

 private:
  Transfer begin(std::size_t buffer) {
    const std::int64_t ranges = swap_.file().bytes() / kRangeBytes;
    // What is written is half a file away from what is read.
    const bool reads = buffer < reads_;
    const std::int64_t shift = reads_ > 0 && !reads ? ranges / 2 : 0;
    std::int64_t& next = reads ? next_read_ : next_written_;
    const std::int64_t offset = (next++ + shift) % ranges * kRangeBytes;
    return reads ? swap_.read(offset, buffers_.of(buffer))
                 : swap_.write(offset, buffers_.of(buffer));
  }

  Swap& swap_;
  const Buffers& buffers_;
  std::size_t reads_;
  std::int64_t next_read_ = 0, next_written_ = 0;
};

void measure_row(Swap& swap, const Buffers& buffers, double seconds, StorageRate& row) {
  row.write = RangeFlow(swap, buffers, 0).run(seconds);
  row.read = RangeFlow(swap, buffers, kRanges).run(seconds);
  row.both = RangeFlow(swap, buffers, kRanges / 2).run(seconds);
}

}  // namespace

double StorageRate::share_of_both() const {
  return std::min(1.0, both / one_after_the_other());
}

const StorageRate& StorageRates::best() const {
  return *std::max_element(rates.begin(), rates.end(),
                           [](const auto& a, const auto& b) { return a.both < b.both; });
}

const StorageRate& StorageRates::usual() const {
  const StorageOptions of_a_run;
  const auto row = std::ranges::find_if(rates, [&](const StorageRate& rate) {  // io_uring's first
    return rate.chunk_bytes == of_a_run.chunk_bytes && rate.queue_depth == of_a_run.queue_depth;
  });
  return row != rates.end() ? *row : best();
}

StorageRates measure_storage(const StorageRatesOptions& options,
                             const std::function<void(const StorageRate&)>& tell) {
  const std::int64_t bytes = std::max(round_up(options.bytes, kRangeBytes),
                                      2 * static_cast<std::int64_t>(kRanges) * kRangeBytes);
  const auto file = std::make_shared<SwapFile>(options.folder, bytes, options.direct);
  StorageRates out{.file = file->description(), .capacity = free_bytes(options.folder)};
  const Buffers buffers;
  StorageOptions row_options{.folder = options.folder, .path = IoPath::threads};
  {  // What was never written is not read from the disk.
    Swap swap(row_options, file);
    RangeFlow(swap, buffers, 0).run(0, bytes);
  }
  for (const IoPath path : {IoPath::io_uring, IoPath::threads})
    for (const std::int64_t chunk : options.chunk_bytes)
      for (const int depth : options.queue_depths) {
        row_options.path = path;
        row_options.chunk_bytes = chunk;
        row_options.queue_depth = depth;
        std::optional<Swap> swap;
        try {
          swap.emplace(row_options, file);
        } catch (const StorageError& error) {
          if (path == IoPath::threads) throw;
          out.without_uring = error.what();
          continue;
        }
        StorageRate row{.how = path == IoPath::threads ? "threads" : "io_uring",
                        .chunk_bytes = chunk,
                        .queue_depth = depth};
        measure_row(*swap, buffers, options.seconds, row);
        tell(row);
        out.rates.push_back(row);
      }
  return out;
}

}  // namespace shardplan::validator
