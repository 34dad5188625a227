#include "save/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/diagnostic.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw InputError({.file = path, .message = fmt::format("cannot be written: {}", why)});
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  cannot_write(path, std::generic_category().message(error));
}

/// Closes what it holds; close() says what went wrong until then.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool open() const { return number_ >= 0; }
  bool write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(number_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  /// On the disk, not in a cache: some file systems say only now that they are full.
  bool flush() const { return ::fsync(number_) == 0 || errno == EINVAL || errno == EROFS; }
  bool permit(mode_t mode) const { return ::fchmod(number_, mode) == 0; }
  bool close() {
    const int number = number_;
    number_ = -1;
    return ::close(number) == 0;
  }

 private:
  int number_;
};

/// The place that a chain of symbolic links names, which need not be there yet.
std::string past_links(const std::string& path) {
  constexpr int kLongestChain = 40;  // what Linux follows (path_resolution(7))
  fs::path place(path);
  std::error_code error;
  for (int i = 0; i < kLongestChain; ++i) {
    if (!fs::is_symlink(place, error)) return place.string();
    const fs::path next = fs::read_symlink(place, error);
    if (error) break;
    place = next.is_absolute() ? next : place.parent_path() / next;
  }
  cannot_write(path, ELOOP);
}

std::string temporary_beside(const std::string& target) {
  static std::atomic<unsigned> count{0};
  const std::string name = fmt::format(".shardplan-{}-{}.part", ::getpid(), count++);
  return (fs::path(target).parent_path() / name).string();
}

bool is_stream(const struct stat& file) {
  return S_ISCHR(file.st_mode) || S_ISFIFO(file.st_mode) || S_ISBLK(file.st_mode) ||
         S_ISSOCK(file.st_mode);
}

/// What is at `target`; false: nothing. Throws where it must not be replaced.
bool look_at(const std::string& path, const std::string& target, struct stat& there) {
  if (::stat(target.c_str(), &there) != 0) return false;
  if (S_ISDIR(there.st_mode)) cannot_write(path, "it is a folder");
  if (is_stream(there)) return true;
  // The mode, and not only access(2): root may write everything, and should not.
  constexpr mode_t kAnybodyWrites = S_IWUSR | S_IWGRP | S_IWOTH;
  if ((there.st_mode & kAnybodyWrites) == 0 || ::access(target.c_str(), W_OK) != 0)
    cannot_write(path, "it is read-only");
  return true;
}

void write_stream(const std::string& path, const std::string& target, std::string_view text) {
  Descriptor out(::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!out.open() || !out.write(text) || !out.close()) cannot_write(path, errno);
}

}  // namespace

StagedFiles::~StagedFiles() {
  for (const Staged& file : files_)
    if (!file.temporary.empty()) ::unlink(file.temporary.c_str());
}

void StagedFiles::add(const std::string& path, std::string_view text, Mode mode) {
  Staged file{.path = path, .target = past_links(path), .temporary = {}, .text = {}};
  struct stat there {};
  const bool replaces = look_at(path, file.target, there);
  if (replaces && is_stream(there)) {
    file.text = text;
    files_.push_back(std::move(file));
    return;
  }
  file.temporary = temporary_beside(file.target);
  const mode_t fresh = mode == Mode::program ? 0777 : 0666;
  Descriptor out(::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fresh));
  if (!out.open()) cannot_write(path, errno);
  files_.push_back(file);  // from here on the destructor removes it
  const mode_t executable = mode == Mode::program ? S_IXUSR : 0;
  if ((replaces && !out.permit((there.st_mode & 07777U) | executable)) || !out.write(text) ||
      !out.flush() || !out.close())
    cannot_write(path, errno);
}

void StagedFiles::place() {
  for (Staged& file : files_) {
    if (file.temporary.empty())
      write_stream(file.path, file.target, file.text);
    else if (std::rename(file.temporary.c_str(), file.target.c_str()) != 0)
      cannot_write(file.path, errno);
    file.temporary.clear();
  }
  files_.clear();
}

void write_file(const std::string& path, std::string_view text) {
  StagedFiles files;
  files.add(path, text);
  files.place();
}

void check_writable(const std::string& path) {
  StagedFiles files;
  files.add(path, "");
}

}  // namespace shardplan
