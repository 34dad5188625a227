#include "checkpoint/shards.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <vector>

#include "base/diagnostic.h"
#include "checkpoint/values.h"
#include "model/safetensors.h"

namespace shardplan::validator {
namespace {

/// Files of the ranks that keep what a rank has.
class KeptShards {
 public:
  explicit KeptShards(std::string folder) : folder_(std::move(folder)) {}

  const StoredTensor& find(const SavedTensor& saved) {
    const std::string path = (std::filesystem::path(folder_) / shard_name(saved.keeper)).string();
    const Safetensors& file = files_.try_emplace(saved.keeper, path).first->second;
    const auto at = file.tensors().find(saved.name);
    if (at == file.tensors().end())
      throw InputError({.file = path, .key = saved.name, .message = "this tensor is missing"});
    const StoredTensor& tensor = at->second;
    const std::vector<std::int64_t> shape{saved.numel};
    if (tensor.dtype != saved.dtype || tensor.shape != shape)
      throw InputError(
          {.file = path,
           .key = saved.name,
           .message = fmt::format("{} bytes of {}", tensor.bytes.size(), name_of(tensor.dtype)),
           .expected = fmt::format("{} elements of {}", saved.numel, name_of(saved.dtype))});
    return tensor;
  }

 private:
  std::string folder_;
  std::map<int, Safetensors> files_;
};

}  // namespace

Written write_shard(Trainer& trainer, const ShardFile& file, OutputFile& out, Lockstep& ranks) {
  const std::string header = file.layout.header();
  const auto begin = static_cast<std::int64_t>(header.size());
  out.write(0, std::as_bytes(std::span(header)));
  std::vector<std::byte> staging(static_cast<std::size_t>(staging_bytes(file.tensors)));
  std::int64_t unsaid = 0;
  read_values(trainer, file.tensors, staging,
              [&](std::size_t t, std::int64_t first, std::span<const std::byte> bytes) {
                out.write(begin + file.layout.offset(static_cast<int>(t)) + first, bytes);
                unsaid += std::ssize(bytes);
                if (unsaid < kRoundBytes) return;
                out.flush();
                ranks.any_busy(true);
                unsaid = 0;
              });
  out.finish();
  return {begin + file.layout.data_bytes(), static_cast<std::int64_t>(staging.size())};
}

void restore_rank(const EngineJob& job, const Checkpoint& checkpoint, int rank, Trainer& trainer) {
  const RankPlace place = place_of(job, rank);
  KeptShards shards(checkpoint.folder);
  const std::vector<SavedTensor> tensors = tensors_of(job, place, trainer.network().units(), {});
  write_values(trainer, tensors, [&](std::size_t t) { return shards.find(tensors[t]).bytes; });
  trainer.restore(checkpoint.state);
}

}  // namespace shardplan::validator
