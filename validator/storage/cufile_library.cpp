#include "storage/cufile_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <vector>

#include "storage/errors.h"

namespace shardplan::validator {
namespace {

struct ErrorWords {
  std::int32_t number;
  std::string_view words;
};
constexpr std::array kErrors{
    ErrorWords{5001, "nvidia-fs is not loaded, and cufile.json forbids the compatibility mode"},
    ErrorWords{5004, "nvidia-fs is of another version"},
    ErrorWords{5007, "this platform is not supported"},
    ErrorWords{5008, "the file system is not supported"},
    ErrorWords{5009, "the GPU is not supported"},
    ErrorWords{5010, "nvidia-fs failed"},
    ErrorWords{5012, "no memory of the GPU"},
    ErrorWords{5013, "memory of a kind that is not supported"},
    ErrorWords{5015, "memory of another CUDA context"},
    ErrorWords{5016, "more of the GPU's memory than max_device_pinned_mem_size_kb"},
    ErrorWords{5018, "files of this type are not supported"},
    ErrorWords{5019, "a flag that the file was opened with is not supported"},
    ErrorWords{5020, "the file is not open for direct I/O"},
    ErrorWords{5025, "permission denied"},
    ErrorWords{5027, "the file cannot be registered; without udev its file system is unknown"},
    ErrorWords{5029, "no GPU"},
    ErrorWords{5031, "the file cannot be opened a second time"},
    ErrorWords{5033, "nvidia-fs cannot be set up"},
    ErrorWords{5034, "cufile.json forbids it on this file"},
    ErrorWords{5036, "the GPU's memory cannot be pinned"},
    ErrorWords{5043, "no memory"},
    ErrorWords{5044, "input or output failed"},
};

}  // namespace

std::string cufile_words(cufile::Status status) {
  constexpr std::int32_t kCuda = 5011;
  if (status.cufile == kCuda) return fmt::format("the CUDA driver's error {}", status.cuda);
  const auto row = std::ranges::find(kErrors, status.cufile, &ErrorWords::number);
  return row != kErrors.end() ? fmt::format("{} ({})", row->words, status.cufile)
                              : fmt::format("error {}", status.cufile);
}

std::shared_ptr<CufileLibrary> CufileLibrary::open(const std::string& file) {
  static std::mutex mutex;
  static std::weak_ptr<CufileLibrary> there;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<CufileLibrary> library = there.lock();
  if (library != nullptr && library->file_ == file) return library;
  library.reset(new CufileLibrary(file));
  there = library;
  return library;
}

CufileLibrary::CufileLibrary(const std::string& file) : file_(file) {
  load(file);
  find_functions();
  open_driver();
  description_ = describe();
}

/// It stays loaded: threads of its own may outlive its driver.
CufileLibrary::~CufileLibrary() {
  if (opened_) driver_close_();
}

void CufileLibrary::load(const std::string& file) {
  std::vector<std::string> names{file};
  if (file.empty()) names = {"libcufile.so.0", "libcufile.so"};
  std::string why;
  for (const std::string& name : names) {
    library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    if (why.empty()) why = dlerror();
  }
  throw StorageError(fmt::format(
      "no cuFile: {}; CUDA's libraries have it, and the Python package nvidia-cufile: its folder "
      "goes to LD_LIBRARY_PATH, or its file to run.nvme.cufile",
      why));
}

void CufileLibrary::find_functions() {
  const auto find = [this](auto*& function, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
      if (function != nullptr) return;
    }
  };
  const auto need = [&](auto*& function, std::initializer_list<const char*> names) {
    find(function, names);
    if (function == nullptr)
      throw StorageError(fmt::format("no cuFile: {} has no {}",
                                     file_.empty() ? "libcufile.so" : file_, *names.begin()));
  };
  need(driver_open_, {"cuFileDriverOpen"});
  need(driver_close_, {"cuFileDriverClose_v2", "cuFileDriverClose"});
  need(properties_, {"cuFileDriverGetProperties"});
  need(handle_register, {"cuFileHandleRegister"});
  need(handle_deregister, {"cuFileHandleDeregister"});
  need(buf_register, {"cuFileBufRegister"});
  need(buf_deregister, {"cuFileBufDeregister"});
  need(read, {"cuFileRead"});
  need(write, {"cuFileWrite"});
  find(version_, {"cuFileGetVersion"});  // CUDA 12
}

void CufileLibrary::open_driver() {
  const cufile::Status status = driver_open_();
  opened_ = status.cufile == 0;
  if (!opened_ && status.cufile != cufile::kAlreadyOpen)
    throw StorageError(fmt::format("cuFile's driver does not open: {}", cufile_words(status)));
}

std::string CufileLibrary::describe() const {
  std::string name = "cuFile";
  if (int version = 0; version_ != nullptr && version_(&version).cufile == 0)
    name += fmt::format(" {}.{}", version / 1000, version % 1000 / 10);
  cufile::Properties p;
  if (const cufile::Status status = properties_(&p); status.cufile != 0)
    return fmt::format("{} (its properties are unknown: {})", name, cufile_words(status));
  if (p.driver_major != 0 || p.driver_minor != 0)
    return fmt::format("{}, direct (nvidia-fs {}.{})", name, p.driver_major, p.driver_minor);
  if ((p.features & cufile::kFeaturePeerToPeer) != 0)
    return fmt::format("{}, direct (PCI peer to peer)", name);
  return fmt::format(
      "{}, compatibility mode (no nvidia-fs: through the host's memory, not straight to the GPU as "
      "asked)",
      name);
}

}  // namespace shardplan::validator
