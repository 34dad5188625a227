#include "checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/diagnostic.h"
#include "storage/errors.h"

namespace shardplan::validator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-", kPartial = ".part-";

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw StorageError(fmt::format("{}: {} ({})", path, what, std::strerror(error)));
}

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kStep.size(), end, step);
  return read.ec == std::errc() && read.ptr == end ? std::optional(step) : std::nullopt;
}

bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kIndexName, error);
}

/// What a folder lists is on the disk.
void flush_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);  // refused by file systems that need none
  close(descriptor);
}

}  // namespace

std::string checkpoint_folder(const std::string& folder, std::int64_t step) {
  return (fs::path(folder) / fmt::format("{}{}", kStep, step)).string();
}

std::string latest_checkpoint(const std::string& path) {
  if (is_checkpoint(path)) return path;
  std::int64_t latest = -1;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && *step > latest && is_checkpoint(entry.path())) latest = *step;
  }
  if (latest < 0)
    throw InputError(
        {.file = path,
         .key = "run.resume",
         .message = error ? fmt::format("cannot be read: {}", error.message())
                          : "there is no whole checkpoint",
         .expected = "a folder with index.json, or with folders step-N that have one"});
  return checkpoint_folder(path, latest);
}

void prepare_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, "no folder for checkpoints", error.value());
  if (access(folder.c_str(), W_OK | X_OK) != 0) fail(folder, "takes no checkpoints", errno);
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(kPartial)) fs::remove_all(entry, error);
}

PartialFolder::PartialFolder(const std::string& folder, std::int64_t step, bool leads)
    : target_(checkpoint_folder(folder, step)),
      temporary_((fs::path(folder) / fmt::format("{}{}{}", kPartial, kStep, step)).string()),
      leads_(leads) {
  if (!leads_) return;
  std::error_code error;
  fs::remove_all(temporary_, error);
  constexpr mode_t kEverybodyReads = 0777;
  if (mkdir(temporary_.c_str(), kEverybodyReads) != 0)
    fail(temporary_, "no folder for a checkpoint", errno);
}

PartialFolder::~PartialFolder() {
  if (placed_) return;
  std::error_code error;
  leads_ ? fs::remove_all(temporary_, error) : fs::remove(temporary_, error);
}

std::string PartialFolder::path(const std::string& name) const {
  return (fs::path(temporary_) / name).string();
}

void PartialFolder::check_shared() const {
  std::error_code error;
  if (!fs::is_directory(temporary_, error))
    throw StorageError(
        fmt::format("{}: the folder that rank 0 made is not here; checkpoints need a folder that "
                    "all ranks reach",
                    temporary_));
}

void PartialFolder::place() {
  flush_folder(temporary_);
  std::error_code error;
  if (fs::exists(target_, error)) {
    // At no moment is there neither. Where a file system cannot exchange, there is for one.
    if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
      fs::remove_all(temporary_, error);
      placed_ = true;
      return flush_folder(fs::path(target_).parent_path().string());
    }
    fs::remove_all(target_, error);
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail(target_, "a checkpoint cannot take its place", errno);
  placed_ = true;
  flush_folder(fs::path(target_).parent_path().string());
}

}  // namespace shardplan::validator
