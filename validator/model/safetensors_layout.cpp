#include "model/safetensors_layout.h"

#include <cassert>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "json/document.h"

namespace shardplan::validator {
namespace {

std::string_view stored_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "F64";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i8:
      return "I8";
    default:
      assert(dtype == DType::f32);
      return "F32";
  }
}

}  // namespace

int SafetensorsLayout::add(std::string name, DType dtype, std::vector<std::int64_t> shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t d : shape) bytes = checked_mul(bytes, d);
  tensors_.push_back({std::move(name), dtype, std::move(shape), data_bytes_, bytes});
  data_bytes_ = checked_add(data_bytes_, bytes);
  return tensors() - 1;
}

std::string SafetensorsLayout::header() const {
  constexpr std::size_t kAligned = 64;
  Json json{{"__metadata__", {{"format", "pt"}}}};  // without it transformers refuses the file
  for (const Placed& t : tensors_)
    json[t.name] = {{"dtype", stored_name(t.dtype)},
                    {"shape", t.shape},
                    {"data_offsets", {t.offset, t.offset + t.bytes}}};
  std::string text = json.dump();
  while ((text.size() + sizeof(std::uint64_t)) % kAligned != 0) text += ' ';
  const std::uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

std::int64_t SafetensorsLayout::file_bytes() const {
  return static_cast<std::int64_t>(header().size()) + data_bytes_;
}

}  // namespace shardplan::validator
