#include "checkpoint/whole.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "checkpoint/config_text.h"
#include "checkpoint/lockstep.h"
#include "checkpoint/shard_layout.h"
#include "engine/element_range.h"
#include "model/pretrained_rows.h"
#include "model/safetensors.h"
#include "storage/errors.h"
#include "storage/output_file.h"

namespace shardplan::validator {
namespace {

namespace fs = std::filesystem;

/// Kinds of states as PyTorch's AdamW calls them.
constexpr std::array<std::string_view, kSavedKinds> kSuffixes{"", ".master", ".exp_avg",
                                                              ".exp_avg_sq", ""};

std::string suffix_of(SavedAs kind) {
  return std::string(kSuffixes[static_cast<std::size_t>(kind)]);
}

/// As transformers saves them: published files of a family, and peft's.
std::string full_name(const DecoderSpec& s, const std::string& name) {
  const bool outside = name.starts_with("lm_head");
  const std::string in_model =
      outside ? name : (s.family == "gpt2" ? "transformer." : "model.") + name;
  return s.lora ? "base_model.model." + in_model : in_model;
}

/// Where a unit's parameter goes, in the form in which checkpoints are published.
std::vector<PretrainedRows> rows_of(const DecoderSpec& s, const std::string& unit,
                                    const std::string& parameter) {
  return pretrained_rows(s, unit, parameter, [&](const std::string& name) {
    return s.family != "mixtral" && name.ends_with("mlp.gate.weight");
  });
}

std::int64_t columns_of(const ParameterSpec& p) {
  return p.whole.dimensions() > 1 ? p.whole.last() : 1;
}

std::vector<std::int64_t> shape_of(const ParameterSpec& p, const PretrainedRows& part) {
  if (p.whole.dimensions() == 1) return {part.count};
  const auto [rows, columns] = part.shape(columns_of(p));
  return {rows, columns};
}

/// A file of whole tensors; in one rank's hands.
struct Target {
  std::string name;
  bool states = false;
  SafetensorsLayout layout;
  std::map<std::string, int> places;  ///< by name
};

void add_unit(Target& target, const EngineJob& job, const Unit& unit) {
  const auto& spec = std::get<DecoderSpec>(job.network);
  const auto& o = job.training.optimizer;
  for (const ParameterSpec& p : unit.parameters) {
    if (p.ends == Ends::copy) continue;
    for (const PretrainedRows& part : rows_of(spec, unit.name, p.name)) {
      const auto add = [&](SavedAs kind, DType dtype) {
        const std::string name = full_name(spec, part.name) + suffix_of(kind);
        target.places[name] = target.layout.add(name, dtype, shape_of(p, part));
      };
      if (!target.states) {
        add(SavedAs::parameters, job.training.dtype);
        continue;
      }
      if (o.master) add(SavedAs::master, *o.master);
      add(SavedAs::first_moment, o.states);
      add(SavedAs::second_moment, o.states);
    }
  }
}

std::vector<Target> targets_of(const EngineJob& job) {
  const SaveOptions& save = job.run.save;
  if (!save.whole) return {};
  std::vector<Target> targets(1);
  targets[0].name =
      job.plan().workload.lora ? "weights/adapter_model.safetensors" : "weights/model.safetensors";
  if (save.whole_states)
    targets.push_back({.name = "optimizer/states.safetensors", .states = true});
  for (int stage = 0; stage < job.training.pipeline.stages; ++stage) {
    const auto network = job.make_network({.stage = stage});
    for (const Unit& unit : network->units())
      if (!unit.frozen)  // whoever has adapters has their base
        for (Target& target : targets) add_unit(target, job, unit);
  }
  return targets;
}

/// A small file of whole weights.
struct TextFile {
  std::string name, text;
};

TextFile config_of(const EngineJob& job) {
  if (job.plan().workload.lora) return {"weights/adapter_config.json", adapter_config_text(job)};
  return {"weights/config.json", config_text(job)};
}

void write_config(const EngineJob& job, const std::string& folder) {
  const auto [name, text] = config_of(job);
  OutputFile out((fs::path(folder) / name).string(), std::ssize(text));
  out.write(0, std::as_bytes(std::span(text)));
  out.finish();
}

/// One of the shards' tensors, and the elements of its unit that it has.
struct Source {
  const Unit& unit;
  const SavedTensor& saved;
  std::span<const std::byte> bytes;
  ElementRange here;
};

/// A target while it is written.
struct OpenTarget {
  const Target& target;
  std::span<std::byte> values;  ///< of the file, after its header
};

void place_rows(const EngineJob& job, const Source& from, const ParameterSpec& p,
                const PretrainedRows& part, const OpenTarget& to) {
  const auto& spec = std::get<DecoderSpec>(job.network);
  const int index = to.target.places.at(full_name(spec, part.name) + suffix_of(from.saved.kind));
  const auto size = static_cast<std::size_t>(size_of(from.saved.dtype));
  std::byte* const begin = to.values.data() + to.target.layout.offset(index);
  const std::int64_t columns = columns_of(p), start = part.first * columns;
  for_each_run(p, [&](const Run& run) {
    const ElementRange in_run = overlap({run.whole, run.length}, start, part.count * columns);
    const std::int64_t moved = p.offset + run.here - run.whole;
    const ElementRange piece = overlap(from.here, in_run.first + moved, in_run.count);
    if (piece.count == 0) return;
    const std::byte* values =
        from.bytes.data() + static_cast<std::size_t>(piece.first - from.here.first) * size;
    const std::int64_t first = piece.first - moved - start;  // of the part, row by row
    if (part.in_order()) {
      std::memcpy(begin + static_cast<std::size_t>(first) * size, values,
                  static_cast<std::size_t>(piece.count) * size);
      return;
    }
    for (std::int64_t i = first; i < first + piece.count; ++i, values += size)
      std::memcpy(begin + static_cast<std::size_t>(part.stored_at(i, columns)) * size, values,
                  size);
  });
}

void place_tensor(const EngineJob& job, const Source& from, const std::vector<OpenTarget>& open) {
  if (from.saved.kind == SavedAs::pending_gradient) return;
  const bool states = from.saved.kind != SavedAs::parameters;
  for (const OpenTarget& to : open) {
    if (to.target.states != states) continue;
    for (const ParameterSpec& p : from.unit.parameters) {
      if (p.ends == Ends::copy) continue;
      for (const PretrainedRows& part :
           rows_of(std::get<DecoderSpec>(job.network), from.unit.name, p.name))
        place_rows(job, from, p, part, to);
    }
  }
}

}  // namespace

std::vector<IndexedFile> whole_files(const EngineJob& job) {
  std::vector<IndexedFile> files;
  if (job.run.save.whole) {
    const auto [name, text] = config_of(job);
    files.push_back({name, std::ssize(text)});
  }
  for (const Target& target : targets_of(job))
    files.push_back({target.name, target.layout.file_bytes()});
  return files;
}

void write_whole(const EngineJob& job, const std::string& folder,
                 const std::function<void()>& round) {
  const std::vector<Target> targets = targets_of(job);
  std::vector<std::unique_ptr<OutputFile>> files;
  std::vector<OpenTarget> open;
  for (const Target& target : targets) {
    const fs::path path = fs::path(folder) / target.name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);  // the file cannot be made where this fails
    files.push_back(std::make_unique<OutputFile>(path.string(), target.layout.file_bytes()));
    const std::string header = target.layout.header();
    const std::span<std::byte> all = files.back()->map();
    std::memcpy(all.data(), header.data(), header.size());
    open.push_back({target, all.subspan(header.size())});
  }
  write_config(job, folder);
  const int world = static_cast<int>(job.plan().cluster.world());
  std::int64_t unsaid = 0;
  for (int rank = 0; rank < world; ++rank) {
    const RankPlace place = place_of(job, rank);
    const auto network = job.make_network(place.network);
    const Safetensors shard((fs::path(folder) / shard_name(rank)).string());
    for (const SavedTensor& saved : shard_file(job, rank, contents_of(job)).tensors) {
      const Unit& unit = network->units()[static_cast<std::size_t>(saved.unit)];
      if (unit.frozen) continue;
      const StoredTensor& stored = shard.tensors().at(saved.name);
      place_tensor(job, {unit, saved, stored.bytes, {place.sharding.first(unit), saved.numel}},
                   open);
      unsaid += std::ssize(stored.bytes);
      if (unsaid < kRoundBytes) continue;
      for (const auto& file : files) file->flush();
      round();
      unsaid = 0;
    }
  }
  for (const auto& file : files) file->finish();
}

}  // namespace shardplan::validator
