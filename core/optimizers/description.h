// What an optimizer keeps, computes and is called: all that the rest asks about one. An optimizer
// is a file here that fills in an OptimizerDescription, and a row of the registry.
// docs/explanation/memory.md, "Optimizers", has the table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "model/model.h"
#include "optimizers/given.h"
#include "plan/optimizer.h"

namespace shardplan {

/// What an optimizer updates at once: a tensor, a shard of one, or a flat buffer.
struct Updated {
  Given given = Given::tensors;
  /// None: a buffer of several. A flat buffer with one has its shape, as under DeepSpeed's plain
  /// engine.
  const Parameter* parameter = nullptr;
  std::int64_t numel = 0;       ///< elements that this rank updates
  std::int64_t whole = 0;       ///< flat: elements of all tensors that reach into it, uncut
  bool special = false;         ///< flat: of parameters that the description's `takes` names
  bool updates_special = true;  ///< flat: whether the framework runs what those are taken for

  bool is_matrix() const { return parameter != nullptr && parameter->shape.size() > 1; }
};

/// Element types of states and temporaries.
enum class StateType : std::uint8_t {
  plan,  ///< the plan's for states, as zeros_like(parameter) makes them; fp32 for LoRA
  fp32,
  half,      ///< bf16
  byte,      ///< packed or quantized values
  gradient,  ///< what the framework reduces or accumulates gradients in
  widened,   ///< fp32 copies of what is 16 bits wide; nothing where the plan's type is fp32
};

/// One state of each updated tensor, a block of its own.
struct State {
  std::string_view name;
  StateType type = StateType::plan;
  /// Elements of `type`; 0: has no such state. `numel` by default.
  std::int64_t (*elements)(const Updated& tensor, const Optimizer& optimizer) = nullptr;
  /// Those with as many elements and more of their tensor are in managed memory, which the driver
  /// moves between GPU and host; 0: none is.
  std::int64_t paged_from = 0;
};

/// Blocks that exist beside the states at the worst moment of a step.
struct Temporary {
  enum class Of : std::uint8_t {
    one,       ///< the tensor that takes most alone
    all,       ///< all tensors together
    previous,  ///< the tensor before that one, whose name a loop has not bound anew
  };
  Of of = Of::one;
  std::int64_t count = 1;
  StateType type = StateType::plan;
  /// Elements while `tensor` is updated; `numel` by default.
  std::int64_t (*elements)(const Updated& tensor, const Optimizer& optimizer) = nullptr;
};

/// A product that an update computes, `calls` times.
struct UpdateProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int32_t calls = 1;
  StateType type = StateType::half;
};

/// How often a step reads or writes an element of the states' type, and its calls for each tensor
/// where it takes them one by one.
struct UpdatePasses {
  double count = 0;
  std::int64_t operations = 1;
  double widened = 0;            ///< further ones of fp32, over tensors of 16 bits alone
  std::int64_t of_matrices = 0;  ///< those of `operations` that a vector has not
  std::int64_t widening = 0;     ///< further operations of a tensor of 16 bits
};

/// The kernel that updates one tensor.
struct TensorUpdate {
  bool quantized = false;  ///< its states are, in blocks
  double bytes_each = 0;   ///< that an element's states take, read and written once each
};

/// One way in which the optimizer is implemented.
struct Variant {
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  /// Each tensor's update is calls of its own, in place of one call over a list.
  bool one_by_one = false;
  UpdatePasses (*passes)(const Optimizer& optimizer) = nullptr;
  /// In place of `passes` where tensors differ: one kernel each, for which the host waits.
  TensorUpdate (*update)(const Updated& tensor, const Optimizer& optimizer) = nullptr;
  std::span<const Temporary> temporaries;
};

/// An option that a job may give beside name and implementation.
struct OptimizerOption {
  std::string_view key;
  enum class Kind : std::uint8_t { flag, number, choice } kind = Kind::flag;
  double default_value = 0, least = 0, most = 0;
  std::span<const std::string_view> choices;
  std::string_view help;
};

/// How sure the bytes of states are, and of what.
struct Evidence {
  Source source = Source::modelled;  ///< exact only where a run or the code's own result confirms
  std::string_view of;               ///< what was run or read
};

/// What DeepSpeed calls it.
struct DeepSpeedNames {
  std::span<const std::string_view> types;  ///< of optimizer.type; the first is the usual one
  bool on_cpu = false;                      ///< has a CPU optimizer for offloaded states
  bool fused = false;                       ///< its own is FusedAdam, which FP16_Optimizer wraps
};

struct OptimizerDescription {
  std::string_view name;                        ///< in jobs
  std::string_view words;                       ///< for people
  std::span<const std::string_view> spellings;  ///< other names that jobs may use
  std::span<const State> states;
  /// The first is the one that a job has that names none.
  std::span<const Variant> variants;
  std::span<const OptimizerOption> options;
  /// Parameters that it treats in its own way and leaves the others to another (Muon): frameworks
  /// with flat buffers give each kind buffers of its own. None: it treats all alike.
  bool (*takes)(const Parameter& parameter, Given given) = nullptr;
  /// Products of one tensor's update.
  void (*products)(const Updated& tensor, const Optimizer& optimizer,
                   std::vector<UpdateProduct>& list) = nullptr;
  bool made_when_constructed = false;  ///< states exist before the first step
  DeepSpeedNames deepspeed;
  std::string_view megatron;  ///< of --optimizer; empty: Megatron-LM has none
  bool native = false;        ///< our own engine has it
  /// Indexed by Given: on what the bytes of states rest.
  std::array<Evidence, kGivenKinds> evidence;
  /// Indexed by Given: why a run stops there; empty: it runs.
  std::array<std::string_view, kGivenKinds> stops;
  /// Why a run stops whose gradients are not fp32; empty: it runs.
  std::string_view stops_at_half;
  std::string_view source;  ///< of the formulas
};

/// The variant that `optimizer` runs; the first where it has not that implementation.
const Variant& variant_of(const Optimizer& optimizer);

/// The value of the option `key`, which the description has.
double option_of(const Optimizer& optimizer, std::string_view key);

/// Sets the option `key`, if the description has it.
void set_option(Optimizer& optimizer, std::string_view key, double value);

}  // namespace shardplan
