// What a training step asks of a device. Two implementations: host (kernels/host) and CUDA
// (kernels/cuda); dry_run.h answers nothing and computes nothing.
//
// One Backend is one rank's device and is used by one thread. Operations run in order on the
// compute stream and may return before they are done; only download(), await() and synchronize()
// wait. Collectives (communicator.h) run on the communication stream, fetch() and send() on streams
// of their own. record() and wait() order the streams.
//
// Arithmetic: inputs are widened to fp32, sums are accumulated in fp32, results are rounded to
// nearest-even once. Tensors of one call have the model's element type unless it says otherwise.
// Every reduction has a fixed order: the same inputs give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/expert_operands.h"
#include "device/fp8.h"
#include "device/nf4.h"
#include "device/operands.h"
#include "memory/tensor.h"
#include "program/category.h"

namespace shardplan::validator {

enum class Stream : std::uint8_t {
  compute,
  communication,
  to_host,    ///< fetch()
  to_device,  ///< send()
};
inline constexpr std::size_t kStreamCount = 4;

/// A point in a stream, made by new_event() and reused for the run.
using Event = std::int32_t;

/// The sizes that decide how much workspace the operations of one run need.
struct StepShapes {
  DType dtype = DType::bf16;
  Heads heads;  ///< no heads: a model without attention
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t inner = 0;  ///< widest hidden layer
  std::int64_t padded_vocabulary = 0;
  std::int64_t logit_rows = 0;    ///< of one chunk
  std::int64_t largest_unit = 0;  ///< elements of the largest flat range that is reduced
};

/// Device memory that is taken outside the arena.
struct Overhead {
  std::string name;  ///< "CUDA context", "cuBLAS handle", "NCCL"
  Category category = Category::other;
  std::int64_t bytes = 0;
};

struct DeviceInfo {
  std::string name;  ///< "host", "NVIDIA H200"
  std::int64_t capacity_bytes = 0;
  std::vector<std::pair<std::string, std::string>> versions;  ///< "driver", "cuda", "cublas", ...
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // ---- the device
  virtual DeviceInfo info() const = 0;
  /// What the calling thread does from now on with this device's memory, it does on this device.
  virtual void attend() = 0;
  /// What an allocation could still get now.
  virtual std::int64_t available_bytes() const = 0;
  /// What is in use on the device now, whoever uses it (nvidia-smi's figure).
  virtual std::int64_t used_bytes() const = 0;
  virtual std::vector<Overhead> overheads() const = 0;
  /// The arena's memory, one block for the whole run; the address is aligned to 512 bytes. Throws
  /// DeviceError when the device refuses. Freed with the backend.
  virtual std::uintptr_t allocate(std::int64_t bytes) = 0;
  /// Scratch that the operations of this run share. A function of the shapes alone: the dry run
  /// asks for it too.
  virtual std::int64_t workspace_bytes(const StepShapes& shapes) const = 0;
  virtual void use_workspace(const Tensor& workspace) = 0;

  // ---- streams
  virtual Event new_event() = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  /// Seconds between two recorded events; waits for the second.
  virtual double seconds_between(Event first, Event second) = 0;
  /// The caller waits for a recorded event; throws DeviceError for what failed meanwhile.
  virtual void await(Event event) = 0;
  /// Waits for everything; throws DeviceError for what failed meanwhile.
  virtual void synchronize() = 0;

  // ---- memory of the host that the device is in
  /// Lets fetch() and send() run beside the device's work with this memory, until unpin(). Throws
  /// DeviceError when the machine refuses.
  virtual void pin(std::span<std::byte> memory) = 0;
  virtual void unpin(std::span<std::byte> memory) noexcept = 0;
  /// to: in pinned memory; from: on the device.
  virtual void fetch(const Tensor& to, const Tensor& from) = 0;
  /// to: on the device; from: in pinned memory.
  virtual void send(const Tensor& to, const Tensor& from) = 0;

  // ---- memory
  virtual void upload(const Tensor& to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const Tensor& from) = 0;  ///< waits
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
  virtual void zero(const Tensor& x) = 0;
  virtual void fill(const Tensor& x, float value) = 0;
  /// x[i] = stddev · normal(seed, first_element + i): the same whoever fills which part (random.h).
  virtual void fill_normal(const Tensor& x, float stddev, std::uint32_t seed,
                           std::int64_t first_element) = 0;
  virtual void cast(const Tensor& to, const Tensor& from) = 0;
  virtual void add(const Tensor& to, const Tensor& x) = 0;  ///< to += x

  // ---- y = x wᵀ + bias: x [rows, in], w [out, in], bias [out] or absent, y [rows, out]
  virtual void linear_forward(const Tensor& y, const Tensor& x, const Tensor& w,
                              const Tensor& bias) = 0;
  virtual void linear_backward_input(const Tensor& dx, const Tensor& dy, const Tensor& w) = 0;
  /// dw (+)= dyᵀ x
  virtual void linear_backward_weight(const Tensor& dw, const Tensor& dy, const Tensor& x,
                                      bool accumulate) = 0;
  /// db (+)= Σ over rows of dy
  virtual void linear_backward_bias(const Tensor& db, const Tensor& dy, bool accumulate) = 0;
  virtual void multiply_columns(const ColumnProduct& o) = 0;
  /// to: as many elements as the matrix has.
  virtual void widen(const Tensor& to, const Nf4Matrix& from) = 0;
  /// Each block is scaled by its largest magnitude and each element becomes the nearest code, of
  /// two as near the lower one. With `outer` the scales, less their mean, have 255 even steps up to
  /// the largest of 256; the mean is of sums of 256 in fp32. The same bits on every device.
  virtual void quantize(const Nf4Matrix& to, const Tensor& from) = 0;
  virtual void cast_fp8(const Fp8Cast& o) = 0;
  virtual void find_magnitudes(const Fp8Magnitudes& o) = 0;
  virtual void join_scales(const Fp8JointScales& o) = 0;
  virtual void multiply_fp8(const Fp8Product& o) = 0;

  // ---- layers
  virtual void norm_forward(const NormForward& o) = 0;
  virtual void norm_backward(const NormBackward& o) = 0;
  virtual void head_norm_forward(const HeadNormForward& o) = 0;
  virtual void head_norm_backward(const HeadNormBackward& o) = 0;
  /// Turns q and k of packed rows in place. table: [sequence, head_dim] fp32, the cosines of the
  /// head_dim/2 frequencies, then their sines. Pairs are (i, i + head_dim/2), as in Hugging Face's
  /// rotate_half. `inverse` turns back: the backward pass.
  virtual void rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse) = 0;
  virtual void attention_forward(const AttentionForward& o) = 0;
  virtual void attention_backward(const AttentionBackward& o) = 0;
  virtual void merge_attention(const AttentionMerge& o) = 0;
  virtual void copy_columns(const ColumnCopy& o) = 0;
  /// y [rows, F] from x: [rows, 2F] for swiglu, [rows, F] otherwise.
  virtual void activation_forward(Activation kind, const Tensor& y, const Tensor& x) = 0;
  /// x becomes dx, given dy.
  virtual void activation_backward(Activation kind, const Tensor& x, const Tensor& dy) = 0;
  /// y[r] = table[tokens[r]] (+ positions[places.of(r)] if there are any). tokens: [rows] int32;
  /// a negative one has no row: 0 in its place, and no gradient.
  virtual void embedding_forward(const Tensor& y, const Tensor& tokens, const Tensor& table,
                                 const Tensor& positions, const RowPlaces& places) = 0;
  /// Adds to dtable and dpositions, in a fixed order.
  virtual void embedding_backward(const Tensor& dtable, const Tensor& dpositions, const Tensor& dy,
                                  const Tensor& tokens, const RowPlaces& places) = 0;
  virtual void cross_entropy(const CrossEntropy& o) = 0;
  virtual void loss_parts(const LossParts& o) = 0;
  virtual void joined_cross_entropy(const JoinedCrossEntropy& o) = 0;

  // ---- layers of experts
  virtual void route_forward(const RouteForward& o) = 0;
  virtual void route_backward(const RouteBackward& o) = 0;
  virtual void place_rows(const PlaceRows& o) = 0;
  virtual void combine_rows(const CombineRows& o) = 0;
  virtual void combine_backward(const CombineBackward& o) = 0;
  /// loss [1] fp32 += scale · Σ over experts of balance[0, e] · balance[1, e]
  virtual void balance_loss(const Tensor& loss, const Tensor& balance, float scale) = 0;

  // ---- the optimizer's step
  /// out [1] fp32 (+)= Σ x
  virtual void sum(const Tensor& out, const Tensor& x, bool accumulate) = 0;
  /// out [1] fp32 (+)= Σ x²
  virtual void squared_norm(const Tensor& out, const Tensor& x, bool accumulate) = 0;
  virtual void adamw(const AdamW& o) = 0;
};

}  // namespace shardplan::validator
