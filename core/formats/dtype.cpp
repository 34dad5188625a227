#include "formats/dtype.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardplan {

std::optional<DType> parse_dtype(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 14> kNames{{
      {"fp64", DType::f64},
      {"float64", DType::f64},
      {"fp32", DType::f32},
      {"float32", DType::f32},
      {"float", DType::f32},
      {"bf16", DType::bf16},
      {"bfloat16", DType::bf16},
      {"fp16", DType::f16},
      {"float16", DType::f16},
      {"half", DType::f16},
      {"int64", DType::i64},
      {"int32", DType::i32},
      {"int8", DType::i8},
      {"bool", DType::b1},
  }};
  if (name.starts_with("torch.")) name.remove_prefix(6);
  const auto* found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

}  // namespace shardplan
