// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

/// Files that come into being together. Each is written beside its place and takes it in place();
/// what was not placed is removed, so that a full disk or an error leaves the folder as it was.
///
/// A symbolic link stays, and the file it names is written. A device or a pipe is written to. A
/// file that is there keeps its permissions; one that nobody may write, or a folder, is refused.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  enum class Mode { data, program };  ///< a program may be run by its owner

  /// Throws InputError, with the path and what the system says, when it cannot be written.
  void add(const std::string& path, std::string_view text, Mode mode = Mode::data);
  /// Throws InputError; then the files before the one it names are in place.
  void place();

 private:
  struct Staged {
    std::string path;       ///< as it was asked for
    std::string target;     ///< past symbolic links
    std::string temporary;  ///< "": a device, which gets the text when it is placed
    std::string text;
  };
  std::vector<Staged> files_;
};

/// One file, whole or not at all. Throws InputError.
void write_file(const std::string& path, std::string_view text);

/// Throws InputError where write_file could not even begin: before long work.
void check_writable(const std::string& path);

}  // namespace shardplan
