// Where tensors go in a safetensors file that is to be written; model/safetensors.h reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace shardplan::validator {

class SafetensorsLayout {
 public:
  /// Tensors lie one behind the other in the order in which they are added; returns the number of
  /// this one. Names differ.
  int add(std::string name, DType dtype, std::vector<std::int64_t> shape);

  int tensors() const { return static_cast<int>(tensors_.size()); }
  /// What a file begins with: the length of the header and the header, padded with spaces so that
  /// the values that follow are aligned.
  std::string header() const;
  /// Where tensor `index` begins, counted from the end of the header, and its bytes.
  std::int64_t offset(int index) const {
    return tensors_.at(static_cast<std::size_t>(index)).offset;
  }
  std::int64_t bytes(int index) const { return tensors_.at(static_cast<std::size_t>(index)).bytes; }
  /// Of all tensors.
  std::int64_t data_bytes() const { return data_bytes_; }
  /// Of the file.
  std::int64_t file_bytes() const;

 private:
  struct Placed {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0, bytes = 0;
  };
  std::vector<Placed> tensors_;
  std::int64_t data_bytes_ = 0;
};

}  // namespace shardplan::validator
