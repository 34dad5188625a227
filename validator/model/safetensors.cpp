#include "model/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "json/document.h"

namespace shardplan::validator {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& file, std::string message, std::string key = "") {
  throw InputError({.file = file, .key = std::move(key), .message = std::move(message)});
}

template <typename T>
T read_at(std::span<const std::byte> bytes, std::int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

DType dtype_of(const std::string& name, const std::string& file, const std::string& tensor) {
  if (name == "F64") return DType::f64;
  if (name == "F32") return DType::f32;
  if (name == "BF16") return DType::bf16;
  if (name == "F16") return DType::f16;
  if (name == "I8") return DType::i8;
  fail(file, fmt::format("values of type '{}' cannot be read", name), tensor);
}

}  // namespace

/// A file's bytes, mapped for as long as somebody holds this.
class Safetensors::Mapping {
 public:
  explicit Mapping(const std::string& file) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail(file, "cannot be read");
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    close(descriptor);
    if (data_ == MAP_FAILED || data_ == nullptr) fail(file, "cannot be read, or is empty");
  }
  ~Mapping() { munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

double StoredTensor::element(std::int64_t i) const {
  switch (dtype) {
    case DType::f64:
      return read_at<double>(bytes, i);
    case DType::f32:
      return read_at<float>(bytes, i);
    case DType::bf16:
      return static_cast<float>(
          Eigen::numext::bit_cast<Eigen::bfloat16>(read_at<std::uint16_t>(bytes, i)));
    case DType::f16:
      return static_cast<float>(
          Eigen::half(Eigen::half_impl::raw_uint16_to_half(read_at<std::uint16_t>(bytes, i))));
    default:
      return 0;
  }
}

Safetensors::Safetensors(const std::string& path) : path_(path) {
  std::error_code error;
  std::vector<std::string> files{path};
  if (fs::is_directory(path, error)) {
    files.clear();
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    if (files.empty()) fail(path, "no *.safetensors in this folder");
  }
  for (const std::string& file : files) add_file(file);
}

void Safetensors::add_file(const std::string& file) {
  files_.push_back(std::make_shared<Mapping>(file));
  const std::span<const std::byte> all = files_.back()->bytes();
  if (all.size() < 8) fail(file, "too short for safetensors");
  const auto length = read_at<std::uint64_t>(all, 0);
  if (length > all.size() - 8 || length > kLargestDocument)
    fail(file, fmt::format("a header of {} bytes in a file of {}", length, all.size()));
  const std::string_view text(reinterpret_cast<const char*>(all.data()) + 8,
                              static_cast<std::size_t>(length));
  const std::span<const std::byte> data = all.subspan(8 + static_cast<std::size_t>(length));
  const Json header = parse_json(text, file);
  if (!header.is_object()) fail(file, "its header is no object");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      StoredTensor tensor{.file = file};
      tensor.dtype = dtype_of(entry.at("dtype").get<std::string>(), file, name);
      tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
      const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
      std::int64_t bytes = size_of(tensor.dtype);
      for (const std::int64_t d : tensor.shape) bytes = checked_mul(bytes, d);
      if (begin > end || end > data.size() || static_cast<std::int64_t>(end - begin) != bytes)
        fail(file, "its offsets do not match its shape or the file", name);
      tensor.bytes =
          data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      tensors_[name] = tensor;
    } catch (const nlohmann::json::exception&) {
      fail(file, "needs dtype, shape and data_offsets", name);
    }
  }
}

}  // namespace shardplan::validator
