// What a number format is: the bits of an element, what is stored beside the elements, and how they
// are multiplied. Each format is one row, in dtype.h or in stored_format.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/peak_rates.h"

namespace shardplan {

enum class DType : std::uint8_t;

/// What a format may be named for, and what it can be: bits of NumberFormat::uses.
enum FormatUse : unsigned {
  kTensorType = 1,    ///< the elements of a tensor
  kTrainingType = 2,  ///< of a job: parameters, computation, states, reduction
  kWeightStore = 4,   ///< of a job: the weights of generation
  kBaseStore = 8,     ///< of a job: the frozen weights under LoRA
};

/// What has one value in common.
enum class Sharing : std::uint8_t {
  run,     ///< `columns` elements of the flattened tensor
  tile,    ///< `rows` by `columns` elements of the matrix; 0: the whole dimension
  values,  ///< `columns` values of the part before: scales of scales
};

/// Values that are stored beside the elements: scales, zero points, an order of rows.
struct FormatPart {
  std::string_view what;  ///< "" ends the list
  int bits = 0;           ///< of one value
  Sharing sharing = Sharing::tile;
  std::int64_t rows = 0, columns = 0;
};

struct NumberFormat {
  std::string_view name;                        ///< as jobs write it
  std::array<std::string_view, 2> other_names;  ///< PyTorch's
  int bits = 0;                                 ///< of one element, scales not counted
  std::optional<PeakRate> rate;                 ///< of products; absent: widened, or no number
  std::optional<DType> sums;                    ///< what products are summed in
  unsigned uses = 0;
  std::array<FormatPart, 3> parts{};  ///< beside the elements, each a tensor of its own
  bool widened = false;               ///< copied to the compute type for each product
  bool casts_inputs = false;          ///< products multiply inputs that are cast to it
  bool shards = true;                 ///< frameworks can divide what is stored in it
  bool of_experts = false;            ///< of experts alone: other weights stay as they are
  std::int64_t pads_inputs = 1;       ///< engines' kernels store a multiple of so many inputs
  std::string_view words;             ///< "nf4 weights"
  std::string_view spoken = {};       ///< other words that people type, blanks between

  /// Weights of modules that bitsandbytes puts in the place of linears.
  bool by_bitsandbytes() const { return widened || casts_inputs; }
};

/// Bytes of the elements, then of each part, for a tensor of `rows` (its first dimension) with
/// `numel` elements in all. Values of less than a byte are packed.
std::vector<std::int64_t> bytes_of_parts(const NumberFormat& format, std::int64_t numel,
                                         std::int64_t rows);

/// Their sum, without the padding of allocators.
std::int64_t bytes_in(const NumberFormat& format, std::int64_t numel, std::int64_t rows);

/// "fp32, bf16 or fp16"
std::string alternatives(const std::vector<std::string>& names);

}  // namespace shardplan
