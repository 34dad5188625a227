#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/cufile_library.h"
#include "storage/mover_kinds.h"

namespace shardplan::validator {
namespace {

/// Its calls return when they are done: a thread for each request at once.
class Cufile final : public Mover {
 public:
  /// `descriptor` is its own, `file` what the library calls it.
  Cufile(const MoverParts& parts, std::shared_ptr<CufileLibrary> library, int descriptor,
         cufile::Handle file)
      : queue_(parts.queue), library_(std::move(library)), descriptor_(descriptor), file_(file) {
    for (int i = 0; i < parts.options.queue_depth; ++i)
      threads_.emplace_back([this, device = parts.device] {
        device->attend();
        serve();
      });
  }
  ~Cufile() override {
    for (std::thread& thread : threads_) thread.join();
    for (const std::span<std::byte> memory : registered_) library_->buf_deregister(memory.data());
    library_->handle_deregister(file_);
    close(descriptor_);
  }

  std::string description() const override {
    std::string words = library_->description();
    if (!unregistered_.empty()) words += fmt::format(", memory unregistered ({})", unregistered_);
    return words;
  }
  bool any_size() const override { return true; }
  /// Without it cuFile goes through buffers of its own.
  void use(std::span<std::byte> memory) override {
    const cufile::Status status = library_->buf_register(memory.data(), memory.size(), 0);
    if (status.cufile == 0) {
      registered_.push_back(memory);
    } else {
      unregistered_ = cufile_words(status);
    }
  }

 private:
  void serve() {
    while (std::optional<Chunk> chunk = queue_.pop()) {
      while (true) {
        const ssize_t moved = move(*chunk);
        const bool told = moved < -cufile::kFirstError;  // not by errno
        const Progress progress =
            told ? queue_.note(*chunk, moved, cufile_words({static_cast<std::int32_t>(-moved)}))
                 : queue_.note(*chunk, moved < 0 ? -errno : moved);
        if (progress == Progress::done) break;
      }
    }
  }

  ssize_t move(const Chunk& c) const {
    const auto region = std::ranges::find_if(registered_, [&](std::span<std::byte> memory) {
      return c.memory >= memory.data() && c.memory < memory.data() + memory.size();
    });
    std::byte* const base = region == registered_.end() ? c.memory : region->data();
    const auto bytes = static_cast<std::size_t>(c.bytes);
    return c.transfer->direction == Direction::read
               ? library_->read(file_, base, bytes, c.offset, c.memory - base)
               : library_->write(file_, base, bytes, c.offset, c.memory - base);
  }

  ChunkQueue& queue_;
  std::shared_ptr<CufileLibrary> library_;
  int descriptor_;
  cufile::Handle file_;
  std::vector<std::span<std::byte>> registered_;
  std::string unregistered_;  ///< why some of the memory is not
  std::vector<std::thread> threads_;
};

}  // namespace

namespace {

/// The swap file under a name while cuFile takes it: cuFile opens it once more by its name, and
/// takes none that was opened with O_TMPFILE. A file gets a name once (linkat(2), O_TMPFILE).
class SwapFileName {
 public:
  explicit SwapFileName(const SwapFile& file) {
    struct stat status {};
    if (fstat(file.descriptor(), &status) != 0) return;
    const std::string unnamed = fmt::format("/proc/self/fd/{}", file.descriptor());
    name_ = fmt::format("{}/shardplan-swap-{}", file.folder(), status.st_ino);
    named_ = linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
  ~SwapFileName() {
    if (named_) unlink(name_.c_str());
  }
  SwapFileName(const SwapFileName&) = delete;
  SwapFileName& operator=(const SwapFileName&) = delete;

  /// A descriptor of its own; below 0 with errno where the file has or gets no name.
  int open_file(bool direct) const {
    return named_ ? open(name_.c_str(), O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0)) : -1;
  }

 private:
  std::string name_;
  bool named_ = false;
};

}  // namespace

std::unique_ptr<Mover> make_cufile(const MoverParts& parts, std::string& why) {
  if (parts.device == nullptr) {
    why = "no device";
    return nullptr;
  }
  try {
    auto library = CufileLibrary::open(parts.options.cufile);
    cufile::Descriptor descriptor;
    const SwapFileName name(parts.file);
    descriptor.descriptor = name.open_file(parts.file.direct());
    if (descriptor.descriptor < 0) {
      why = fmt::format("the swap file cannot be given a name: {}", std::strerror(errno));
      return nullptr;
    }
    cufile::Handle handle = nullptr;
    const cufile::Status status = library->handle_register(&handle, &descriptor);
    if (status.cufile == 0)
      return std::make_unique<Cufile>(parts, std::move(library), descriptor.descriptor, handle);
    close(descriptor.descriptor);
    why = fmt::format("{} does not take the swap file: {}", library->description(),
                      cufile_words(status));
  } catch (const StorageError& error) {
    why = error.what();
  }
  return nullptr;
}

}  // namespace shardplan::validator
