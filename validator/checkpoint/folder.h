// The folder of a checkpoint: written under another name beside its place, and renamed when it is
// whole. Nothing that was killed meanwhile is taken for a checkpoint.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan::validator {

inline constexpr const char* kIndexName = "index.json";

/// "FOLDER/step-12"
std::string checkpoint_folder(const std::string& folder, std::int64_t step);

/// `path` itself where it is a checkpoint, else that of the last step in it. Throws InputError.
std::string latest_checkpoint(const std::string& path);

/// Makes the folder of a run's checkpoints, and removes what earlier runs began in it. Throws
/// StorageError. One rank calls it.
void prepare_folder(const std::string& folder);

class PartialFolder {
 public:
  /// Of all ranks; `leads` makes the folder and removes what is in it. The others may use it then.
  PartialFolder(const std::string& folder, std::int64_t step, bool leads);
  /// What was not placed goes: of the leading rank with all that is in it, of another's where
  /// nothing is left in it.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  std::string path(const std::string& name) const;
  /// Throws StorageError where the leading rank's folder is not here.
  void check_shared() const;
  /// The leading rank: the folder takes its place, and that of an earlier checkpoint of this step.
  void place();
  /// The others, afterwards.
  void placed() { placed_ = true; }

 private:
  std::string target_, temporary_;
  bool leads_;
  bool placed_ = false;
};

}  // namespace shardplan::validator
