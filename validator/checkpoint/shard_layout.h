// What a rank saves, and where it lies in its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/rank_place.h"
#include "engine/trainer.h"
#include "model/safetensors_layout.h"

namespace shardplan::validator {

enum class SavedAs : std::uint8_t {
  parameters,
  master,
  first_moment,
  second_moment,
  pending_gradient,  ///< of an update that is made beside the next step
};
inline constexpr std::size_t kSavedKinds = 5;

/// What a rank has of a unit: an array of what it owns, with the unit's padding.
struct SavedTensor {
  int unit = 0;
  SavedAs kind = SavedAs::parameters;
  std::string name;  ///< "blocks.3.first_moment"
  DType dtype = DType::f32;
  std::int64_t numel = 0;
  int keeper = 0;        ///< the rank in whose file it is
  bool on_host = false;  ///< its values lie in memory of the host, or in a file of states
};

struct ShardContents {
  bool states = true;   ///< masters and moments
  bool frozen = true;   ///< units that do not train
  bool pending = true;  ///< gradients of delayed updates
};

/// All that a rank has, of those contents.
std::vector<SavedTensor> tensors_of(const EngineJob& job, const RankPlace& place,
                                    const std::vector<Unit>& units, const ShardContents& contents);

/// "rank-00003.safetensors"
std::string shard_name(int rank);

/// A rank's file. `tensors`: those of tensors_of() that it keeps, in the file's order.
struct ShardFile {
  std::vector<SavedTensor> tensors;
  SafetensorsLayout layout;
};
ShardFile shard_file(const EngineJob& job, int rank, const ShardContents& contents);

/// What the job's checkpoints have of a rank before they are made whole, if they are.
ShardContents contents_of(const EngineJob& job);

}  // namespace shardplan::validator
