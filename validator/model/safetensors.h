// Weights in the safetensors format: a 64-bit length, a JSON header, then the tensors' bytes
// (github.com/huggingface/safetensors, README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace shardplan::validator {

struct StoredTensor {
  std::string file;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  ///< valid as long as the Safetensors lives

  double element(std::int64_t i) const;
};

class Safetensors {
 public:
  /// A file, or a folder with one or more *.safetensors. Throws InputError for what is none.
  explicit Safetensors(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }

 private:
  class Mapping;
  void add_file(const std::string& file);

  std::string path_;
  std::vector<std::shared_ptr<Mapping>> files_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace shardplan::validator
