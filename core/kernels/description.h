// Fused kernels that can take the place of PyTorch's operations: Liger-Kernel's. A kernel is a file
// here that fills in a FusedKernel, and a row of the registry. An operation of a graph that such a
// kernel runs points at its description (Op::fused), and the tape asks that.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardplan {

/// What jobs and Liger's own functions call them.
enum class KernelName : std::uint8_t {
  rms_norm,
  layer_norm,
  rope,
  swiglu,
  geglu,
  cross_entropy,
  fused_linear_cross_entropy,
};
inline constexpr std::size_t kKernelNames = 7;

/// Where the backward pass writes the gradients of a kernel's inputs.
enum class GradientPlace : std::uint8_t {
  fresh,   ///< in new tensors
  result,  ///< over the gradient of the result: that of the first input
  inputs,  ///< over the inputs that the forward pass kept
};

struct FusedKernel {
  std::string_view name;      ///< in jobs
  std::string_view words;     ///< for people
  bool writes_input = false;  ///< the result is written over the first input
  GradientPlace gradients = GradientPlace::fresh;
  bool keeps_input = false;  ///< the loss alone: the others keep what their operation does
  bool in_fp32 = false;      ///< the loss alone: over a copy of the logits in fp32
  /// The loss alone: the host reads how many labels count before its kernels start, and behind the
  /// forward pass whether the loss's gradient is 1 (target_mask.sum().item() and torch.equal).
  bool host_reads = false;
  /// Gradients of parameters are summed in fp32 by each multiprocessor before they are added up:
  /// so many rows of them for each.
  std::int64_t partial_sums = 0;
  /// A loss that is fused with the head: tokens and words of a tile whose logits the backward pass
  /// makes again. None: it makes both gradients in the forward pass.
  struct Tile {
    std::int64_t tokens = 0;
    std::int64_t words = 0;  ///< 0: all
    std::int64_t bytes = 0;  ///< of a logit while its tile is worked on; 0: the compute type's
  } tile;
  /// The loss alone: rows whose labels do not count, such as a prompt's, are left out before it.
  bool skips_unscored = false;
  /// A loss that is fused with the head, over parts of the rows, each with a backward pass of its
  /// own within the forward pass: bytes of fp32 logits in one at most. 0: it is none.
  std::int64_t part_bytes = 0;
  std::string_view source;  ///< what was read
};

/// The kernels that a network runs, by KernelName; null: PyTorch's operations.
using FusedKernels = std::array<const FusedKernel*, kKernelNames>;

/// What a job asks for.
struct KernelRequest {
  bool patches = false;     ///< what Liger patches for the model's type; `names` is empty then
  std::uint32_t names = 0;  ///< a bit for each KernelName
  bool any() const { return patches || names != 0; }
  bool operator==(const KernelRequest&) const = default;
};

constexpr std::uint32_t bit_of(KernelName name) {
  return 1U << static_cast<unsigned>(name);
}

}  // namespace shardplan
