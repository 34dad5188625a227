#include "checkpoint/shard_layout.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace shardplan::validator {
namespace {

constexpr std::array<std::string_view, kSavedKinds> kKindNames{
    "parameters", "master", "first_moment", "second_moment", "pending_gradient"};

}  // namespace

std::vector<SavedTensor> tensors_of(const EngineJob& job, const RankPlace& place,
                                    const std::vector<Unit>& units, const ShardContents& contents) {
  const TrainingOptions& t = job.training;
  std::vector<SavedTensor> all;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    if (unit.frozen && !contents.frozen) continue;
    const auto add = [&](SavedAs kind, DType dtype) {
      all.push_back({static_cast<int>(u), kind,
                     fmt::format("{}.{}", unit.name, kKindNames[static_cast<std::size_t>(kind)]),
                     dtype, place.sharding.shard(unit), place.keeper(unit),
                     kind == SavedAs::parameters ? t.offload.parameters : t.offload.states});
    };
    add(SavedAs::parameters, unit.stored_as(t.dtype));
    if (unit.frozen || !contents.states) continue;
    if (t.optimizer.master) add(SavedAs::master, *t.optimizer.master);
    add(SavedAs::first_moment, t.optimizer.states);
    add(SavedAs::second_moment, t.optimizer.states);
    if (t.offload.delayed && contents.pending) add(SavedAs::pending_gradient, t.dtype);
  }
  return all;
}

std::string shard_name(int rank) {
  return fmt::format("rank-{:05}.safetensors", rank);
}

ShardFile shard_file(const EngineJob& job, int rank, const ShardContents& contents) {
  const RankPlace place = place_of(job, rank);
  const auto network = job.make_network(place.network);
  ShardFile file;
  for (SavedTensor& saved : tensors_of(job, place, network->units(), contents)) {
    if (saved.keeper != rank) continue;
    file.layout.add(saved.name, saved.dtype, {saved.numel});
    file.tensors.push_back(std::move(saved));
  }
  return file;
}

ShardContents contents_of(const EngineJob& job) {
  const SaveOptions& save = job.run.save;
  if (save.sharded) return {};
  // Of a network with adapters they alone are made whole.
  return {.states = save.whole_states, .frozen = !job.plan().workload.lora, .pending = false};
}

}  // namespace shardplan::validator
