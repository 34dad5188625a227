#include "checkpoint/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/diagnostic.h"
#include "model/safetensors.h"

namespace shardplan::validator {
namespace {

constexpr std::int64_t kStagingBytes = std::int64_t{4} << 20;

/// Calls visit(slice, first byte) for pieces of a tensor of at most kStagingBytes.
template <typename Visit>
void for_each_piece(const Tensor& x, Visit&& visit) {
  const std::int64_t size = size_of(x.dtype), most = kStagingBytes / size;
  for (std::int64_t first = 0; first < x.numel(); first += most)
    visit(x.slice(first, std::min(most, x.numel() - first)), first * size);
}

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

std::int64_t staging_bytes(const ShardFile& file) {
  std::int64_t largest = 0;
  for (int t = 0; t < file.layout.tensors(); ++t) largest = std::max(largest, file.layout.bytes(t));
  return std::min(largest, kStagingBytes);
}

Written write_shard(Trainer& trainer, const ShardFile& file, OutputFile& out, Lockstep& ranks) {
  Backend& device = trainer.runtime().device;
  const std::string header = file.layout.header();
  const auto begin = static_cast<std::int64_t>(header.size());
  out.write(0, std::as_bytes(std::span(header)));
  std::vector<std::byte> staging(static_cast<std::size_t>(staging_bytes(file)));
  std::int64_t unsaid = 0;
  for (int t = 0; t < file.layout.tensors(); ++t) {
    const Tensor values = values_of(trainer, file.tensors[static_cast<std::size_t>(t)]);
    const std::int64_t at = begin + file.layout.offset(t);
    for_each_piece(values, [&](const Tensor& piece, std::int64_t offset) {
      const auto here = std::span(staging).first(static_cast<std::size_t>(piece.bytes()));
      device.download(here, piece);
      out.write(at + offset, here);
      unsaid += piece.bytes();
      if (unsaid < kRoundBytes) return;
      out.flush();
      ranks.any_busy(true);
      unsaid = 0;
    });
  }
  out.finish();
  return {begin + file.layout.data_bytes(), static_cast<std::int64_t>(staging.size())};
}

void restore_rank(const EngineJob& job, const Checkpoint& checkpoint, int rank, Trainer& trainer) {
  const RankPlace place = place_of(job, rank);
  Backend& device = trainer.runtime().device;
  KeptShards shards(checkpoint.folder);
  for (const SavedTensor& saved : tensors_of(job, place, trainer.network().units(), {})) {
    const StoredTensor& stored = shards.find(saved);
    const Tensor values = values_of(trainer, saved);
    for_each_piece(values, [&](const Tensor& piece, std::int64_t offset) {
      device.upload(piece, stored.bytes.subspan(static_cast<std::size_t>(offset),
                                                static_cast<std::size_t>(piece.bytes())));
    });
    device.synchronize();  // what was uploaded may be gone afterwards
  }
  trainer.restore(checkpoint.state);
}

}  // namespace shardplan::validator
