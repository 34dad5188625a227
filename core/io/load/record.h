// Measurement records: what a training step really took, and the job that it ran.
//
// Two forms are read: one record a file (shardplan.record/1), and a list of them,
// {"what": ..., "records": [...]}. Of a run with several ranks, `measured` is about one of them:
// rank 0 in the list form, the rank with the highest allocated peak in shardplan.record/1. The
// latter is what an estimate is about as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "hardware/catalog.h"
#include "load/job.h"

namespace shardplan {

/// What is both predicted and measured.
enum class Figure : std::uint8_t {
  model,
  forward_peak,
  forward_end,
  backward_peak,
  backward_end,
  step_peak,
  step_end,
  allocated_peak,
  reserved,
  device,
  step_seconds,
};

inline constexpr std::array<std::string_view, 11> kFigureNames{
    "model",    "forward_peak",   "forward_end", "backward_peak", "backward_end", "step_peak",
    "step_end", "allocated_peak", "reserved",    "device",        "step_seconds"};
inline constexpr std::size_t kFigureCount = kFigureNames.size();
inline constexpr std::size_t kPhaseFigures = 7;  ///< the first ones are the contract's phases

constexpr std::size_t index_of(Figure f) {
  return static_cast<std::size_t>(f);
}

/// By Figure: bytes, or seconds for the last. A record need not have them all.
using Figures = std::array<std::optional<double>, kFigureCount>;

struct Record {
  std::string name;
  std::string file;
  Job job;
  Figures measured;
  std::optional<double> block_between_steps;  ///< seconds: load/record_host.h
  /// "connected": "everything". The process had run every kind of collective, and sends and
  /// receives, among all ranks before its step.
  bool connected = false;
};

/// What could be read, and what could not with the record's name in it.
struct RecordList {
  std::vector<Record> records;
  std::vector<Diagnostic> bad;
};

/// Reads a document of either form. Never throws for bad content: a bad record goes to `bad`, and
/// the others are read all the same.
RecordList read_records(std::string_view text, const std::string& file,
                        const HardwareCatalog& hardware);

/// Reads files, and all *.json below folders; other shardplan documents in a folder are passed
/// over.
RecordList load_records(const std::vector<std::string>& paths, const HardwareCatalog& hardware);

/// The records that are compiled in: tests/golden/training_steps.json and the
/// training records that data/measurements/split.json names, by name.
RecordList built_in_records(const HardwareCatalog& hardware);

}  // namespace shardplan
