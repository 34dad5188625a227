// How fast a folder's disk reads and writes, as a step would use it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "storage/options.h"

namespace shardplan::validator {

struct StorageRatesOptions {
  std::string folder;
  std::int64_t bytes = std::int64_t{4} << 30;  ///< of the file, all of which is written first
  double seconds = 1;                          ///< of each measurement
  std::vector<std::int64_t> chunk_bytes{std::int64_t{1} << 18, std::int64_t{1} << 20,
                                        std::int64_t{1} << 22};
  std::vector<int> queue_depths{4, 16, 32};
  bool direct = true;
  std::optional<IoPath> only;  ///< of the paths; automatic: the one that a run takes; absent: all
  std::string cufile;          ///< libcufile.so; empty: as the loader finds it
  Backend* device = nullptr;   ///< whose memory cuFile moves; null: there is none
};

/// A path that was not timed, and why.
struct AbsentPath {
  std::string how, why;
};

/// Bytes a second with requests of one size, so many at once.
struct StorageRate {
  std::string how;  ///< "io_uring", "threads", "cufile"
  std::int64_t chunk_bytes = 0;
  int queue_depth = 0;
  double read = 0, write = 0;
  double both = 0;  ///< both at once, as much of each: what is read and what is written

  /// Of as much reading as writing, were one done after the other.
  double one_after_the_other() const { return 2 / (1 / read + 1 / write); }
  /// What a step gets of `read` and `write` while it does both.
  double share_of_both() const;
};

struct StorageRates {
  std::string file;                ///< "direct I/O"
  std::string cufile;              ///< which cuFile, and how it goes; empty: it was not timed
  std::vector<AbsentPath> absent;  ///< wanted, but not there
  std::int64_t capacity = 0;       ///< bytes that the file system has free, beside the file
  std::vector<StorageRate> rates;

  /// That does both at once fastest.
  const StorageRate& best() const;
  /// Of the requests that a run makes where nothing is said of them; the fastest where such were
  /// not timed.
  const StorageRate& usual() const;
};

/// Throws StorageError for a folder that is missing, full or cannot be written to, and where the
/// only path that is wanted is not there. `tell`: called before each row.
StorageRates measure_storage(const StorageRatesOptions& options,
                             const std::function<void(const StorageRate&)>& tell);

}  // namespace shardplan::validator
