#include "cli/export_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/diagnostic.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "save/file.h"

namespace shardplan::cli {
namespace {

namespace fs = std::filesystem;

/// A folder and those above it, as far as they had to be made. They go again unless they are kept.
class MadeFolders {
 public:
  explicit MadeFolders(const fs::path& folder) {
    std::error_code error;
    for (fs::path p = fs::absolute(folder); !fs::exists(p, error) && p.has_relative_path();
         p = p.parent_path())
      made_.push_back(p);
    fs::create_directories(folder, error);
    std::error_code unknown;
    if (fs::is_directory(folder, unknown)) return;
    remove();
    throw InputError({.file = folder.string(),
                      .message = fmt::format("the folder cannot be made: {}", error.message())});
  }
  ~MadeFolders() { remove(); }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;
  void keep() { made_.clear(); }

 private:
  void remove() {
    std::error_code error;
    for (const fs::path& folder : made_) fs::remove(folder, error);  // only where it is empty
  }

  std::vector<fs::path> made_;
};

bool has_other_content(const fs::path& path, const std::string& text) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  return !fs::is_regular_file(path, error) || fs::file_size(path, error) != text.size() ||
         read_text_file(path.string()) != text;
}

/// Those of the files that would replace something.
std::vector<std::string> in_the_way(const fs::path& folder,
                                    const std::vector<ExportedFile>& files) {
  std::vector<std::string> names;
  for (const ExportedFile& file : files)
    if (has_other_content(folder / file.name, file.text)) names.push_back(file.name);
  return names;
}

void ask_to_replace(const fs::path& folder, const std::vector<std::string>& names) {
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (confirmed(fmt::format("{}: replace {}?", folder.string(), list))) return;
  throw InputError({.file = folder.string(),
                    .message = fmt::format("has {} already", list),
                    .expected = "another folder, or --force"});
}

}  // namespace

void ExportFolder::write(const std::vector<ExportedFile>& files) const {
  const fs::path folder(path);
  const std::vector<std::string> others = in_the_way(folder, files);
  if (!force && !others.empty()) ask_to_replace(folder, others);
  MadeFolders made(folder);
  StagedFiles staged;
  for (const ExportedFile& file : files)
    staged.add((folder / file.name).string(), file.text,
               file.program() ? StagedFiles::Mode::program : StagedFiles::Mode::data);
  staged.place();
  made.keep();
  for (const ExportedFile& file : files)
    tell(fmt::format("wrote {}\n", (folder / file.name).string()));
}

}  // namespace shardplan::cli
