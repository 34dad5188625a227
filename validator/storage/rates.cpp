#include "storage/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <random>

#include "memory/host_pages.h"
#include "storage/movers.h"
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

/// Buffers whose bytes no disk makes smaller, in the host's memory or a device's.
class Buffers {
 public:
  explicit Buffers(Backend* device) : pages_(kBytes, "what is read and written") {
    std::mt19937_64 random(1);
    const std::span<std::byte> all = pages_.span();
    for (std::size_t i = 0; i < all.size(); i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random();
      std::memcpy(&all[i], &word, sizeof word);
    }
    memory_ = all;
    if (device == nullptr) return;
    const Tensor there{device->allocate(kBytes), DType::i8, Shape{kBytes}};
    device->upload(there, all);
    device->synchronize();
    memory_ = {reinterpret_cast<std::byte*>(there.address), all.size()};
  }
  std::span<std::byte> all() const { return memory_; }
  std::span<std::byte> of(std::size_t range) const {
    constexpr auto kSize = static_cast<std::size_t>(kRangeBytes);
    return memory_.subspan(range * kSize, kSize);
  }

 private:
  static constexpr std::int64_t kBytes = static_cast<std::int64_t>(kRanges) * kRangeBytes;
  HostPages pages_;
  std::span<std::byte> memory_;
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

/// What was never written is not read from the disk.
std::shared_ptr<SwapFile> written_file(const StorageRatesOptions& options, const Buffers& pinned) {
  const std::int64_t bytes = std::max(round_up(options.bytes, kRangeBytes),
                                      2 * static_cast<std::int64_t>(kRanges) * kRangeBytes);
  auto file = std::make_shared<SwapFile>(options.folder, bytes, options.direct);
  Swap swap({.folder = options.folder}, file);
  RangeFlow(swap, pinned, 0).run(0, bytes);
  return file;
}

struct TimedPath {
  const IoPathRow& path;
  const std::shared_ptr<SwapFile>& file;  ///< of paths of the host
  const Buffers& pinned;
  const Buffers& buffers;
};

void measure_path(const TimedPath& timed, const StorageRatesOptions& options, StorageOptions row,
                  const std::function<void(const StorageRate&)>& tell, StorageRates& out) {
  Backend* const device = timed.path.of_host ? nullptr : options.device;
  for (const std::int64_t chunk : options.chunk_bytes)
    for (const int depth : options.queue_depths) {
      row.chunk_bytes = chunk;
      row.queue_depth = depth;
      // cuFile takes a file once: it asks for a name, which a file without one can get once.
      Swap swap(row, device == nullptr ? timed.file : written_file(options, timed.pinned), device);
      swap.use(timed.buffers.all());
      StorageRate rate{.how = timed.path.name, .chunk_bytes = chunk, .queue_depth = depth};
      measure_row(swap, timed.buffers, options.seconds, rate);
      if (device != nullptr) out.cufile = swap.description();
      tell(rate);
      out.rates.push_back(rate);
    }
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
  const Buffers pinned(nullptr);
  const std::shared_ptr<SwapFile> file = written_file(options, pinned);
  StorageRates out{.file = file->description(), .capacity = free_bytes(options.folder)};
  StorageOptions row{.folder = options.folder, .cufile = options.cufile};
  const bool one_is_taken = options.only == IoPath::automatic;
  for (const IoPathRow& path : io_paths()) {
    if (one_is_taken ? !out.rates.empty() || !path.of_host
                     : options.only && *options.only != path.path)
      continue;
    row.path = path.path;
    try {
      if (!path.of_host && options.device == nullptr)
        throw StorageError(fmt::format("{} moves a GPU's memory, and none can be used", path.name));
      std::optional<Buffers> there;
      if (!path.of_host) there.emplace(options.device);
      measure_path({path, file, pinned, there ? *there : pinned}, options, row, tell, out);
    } catch (const StorageError& error) {
      if ((options.only && !one_is_taken) || path.path == IoPath::threads) throw;
      out.absent.push_back({path.name, error.what()});
    }
  }
  return out;
}

}  // namespace shardplan::validator
