// The bookkeeping behind run_tape: storages with reference counts, values, saved tensors.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "program/tape.h"

namespace shardplan {

class TapeState {
 public:
  TapeState(const Model& model, const Segment& segment, const Regime& regime, const Sizes& sizes,
            DType input, TapeMode mode, const TapeOptions& options);

  TapeRun run();

 private:
  using StorageId = std::int32_t;
  static constexpr StorageId kExternal = -1;  ///< parameters and shared tensors: owned elsewhere

  struct Storage {
    std::int64_t bytes = 0;
    std::int32_t refs = 0;
    std::int32_t slot = 0;
    Category category = Category::activations;
    bool exported = false;  ///< the segment's output: freed by the next segment
  };
  struct ValueState {
    StorageId storage = kExternal;
    DType dtype = DType::f32;
    bool needs_grad = false;
    bool sliced = false;          ///< a part of its storage: read element by element
    std::int32_t shared = kNone;  ///< it is this one of Model::shared
  };
  struct Node {
    bool active = false;
    std::array<StorageId, 7> saved{};
    std::int32_t saved_count = 0;
  };
  struct Gradient {
    StorageId storage = kExternal;
    bool present = false;
  };
  /// Of an exchange: its result is needed at once; it runs beside what follows, up to a wait; the
  /// same, and what it sends has been there all along.
  enum class When : std::uint8_t { waited, beside, ahead };
  /// A value whose parts arrive while linears multiply those that are here.
  struct Arriving {
    ValueId value = kNone;
    std::int32_t last = kNone;  ///< index of the last operation that multiplies it
  };
  /// A value that is put together again in the backward pass.
  struct Regathered {
    ValueId from = kNone;
    StorageId whole = kExternal;
  };
  /// The gradient of a tensor that autocast made, on its way to the tensor that was cast: the
  /// cast's backward runs once the node that read the copy has let go of what it saved.
  struct CastBack {
    ValueId value = kNone;
    ParameterId weight = kNone;  ///< instead of `value`
    StorageId gradient = kExternal;
  };

  // Storages.
  StorageId allocate(std::int64_t bytes, Category category);
  StorageId allocate_result(const Op& op, std::int64_t bytes);
  StorageId allocate_kept(std::int64_t bytes, Category category);
  void ref(StorageId id);
  void unref(StorageId id);
  void emit(TapeEvent::Kind kind, Category category, std::int32_t id, std::int64_t bytes);
  std::int64_t bytes_of(Extent extent, DType type) const;
  Category category_of(ValueId id) const;

  // Forward.
  void prepare_inputs();
  void order_releases();
  void forward();
  void forward_op(std::size_t i);
  bool casts(const Op& op) const { return regime_.autocast() && op.autocast; }
  DType result_type(const Op& op) const;
  DType read_type(const Op& op, std::size_t k) const;
  StorageId cast_input(const Op& op, std::size_t k, DType& type);
  bool is_masked(const Op& op) const;
  void math_attention_inference(const Op& op);
  void append_to_cache(const Op& op);
  void pass_side(const Op& op, bool attends, DType type);
  bool is_named_in_model(ValueId id) const;
  void keep_names_of_model();
  void repeat_heads(const Op& op, std::array<StorageId, 3>& read, DType type);
  void cast_weight(const Op& op, Node& node, bool input_needs_grad);
  void save(Node& node, StorageId id);
  void note_saved(ValueId value, StorageId id);
  void save_scores_bias(const Op& op, Node& node);
  // The input that a checkpoint keeps (tape_checkpoint.cpp).
  bool reenters() const;
  bool replaces_input() const;
  ValueId chained_input() const;
  std::int64_t part_bytes() const;
  void save_part();
  void replace_input();
  void restore_input();
  void copy_part(TapeEvent::Kind direction);
  void launch_part_copy();
  // Exchanges among ranks (tape_exchange.cpp).
  void add_exchange(Exchange kind, const Communication& with, std::int64_t bytes, When when);
  void wait_for_exchange();
  bool chunks_into(const Kernel& product, std::int64_t chunks) const;
  std::int32_t last_linear_of(ValueId value) const;
  bool is_scattered_next(const Op& op) const;
  bool waits_for_gradient(const Op& op) const;
  void launch_beside_gather(Kernel product, bool last);
  void launch_beside_scatter(Kernel product, const Op& op);
  std::int64_t payload_of(const Op& op, DType type) const;
  void exchange_forward(const Op& op);
  void exchange_backward(const Op& op, StorageId gradient);
  void exchange_gradient(const Op& op, DType type);
  StorageId gather_kept(const Op& op, DType type);
  void ring(const Op& op, Exchange kind, std::int64_t copies);
  void release_names(std::size_t i);
  void end_forward();
  void stop_recomputation();
  bool op_needs_grad(const Op& op) const;
  bool trains(ParameterId id) const;
  bool is_tied(ParameterId id) const;
  DType parameter_type(ParameterId id) const;
  // Kernels (tape_kernels.cpp).
  void launch(const Kernel& kernel);
  void launch(KernelKind kind, Issue issue, DType type, double bytes, double elements);
  double count_of(ValueId id) const;
  void launch_cast(Extent extent, DType from, DType to, Issue issue);
  void launch_weight_cast(const Parameter& weight, DType from, DType to);
  void flush_kernels();
  double moved(ValueId value, DType type) const;
  Kernel product_of(const Op& op, DType type) const;
  Kernel batched_product_of(const Op& op, DType type) const;
  Kernel attention_of(const Op& op, DType type) const;
  void launch_vocabulary_loss(const Op& op, Issue issue);
  void launch_forward(const Op& op, DType type);
  void launch_math_attention(const Op& op, Issue issue);
  void launch_backward(const Op& op, DType type);
  void launch_product(const Op& op, DType type);
  void launch_linear_backward(const Op& op, DType type);
  void launch_mul_backward(const Op& op);

  // Backward.
  void backward();
  void backward_op(std::size_t i);
  void give(ValueId value, StorageId gradient);
  StorageId gradient_like(ValueId value, DType type);
  StorageId temporary(Extent extent, DType type);
  void parameter_gradient(ParameterId id);
  void linear_backward(const Op& op);
  void embedding_backward(const Op& op);
  void widen_weight(const Op& op);
  bool runs_as_math(const Op& op, DType type) const;
  void math_attention_forward(const Op& op, Node& node);
  void math_attention_backward(const Op& op);
  void fused_loss_forward(const Op& op, Node& node);
  void fused_loss_backward(const Op& op, Node& node);
  void vocabulary_loss_backward(const Op& op, const Node& node);
  void sdpa_backward(const Op& op);
  void elementwise_backward(const Op& op, StorageId g);
  void give_from(const Op& op, std::size_t k, StorageId gradient);
  void let_go(std::size_t i);
  void cast_back();
  void end_backward();

  ValueState& state(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
  const ValueState& state(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  const Parameter& parameter(ParameterId id) const {
    return model_.parameters[static_cast<std::size_t>(id)];
  }

  const Model& model_;
  const Graph& graph_;
  const Regime& regime_;
  const Sizes& sizes_;
  TapeMode mode_;
  TapeOptions options_;
  bool keep_;  ///< autograd saves tensors in this forward
  std::vector<Storage> storages_;
  std::vector<ValueState> values_;
  std::vector<Node> nodes_;
  std::vector<Gradient> gradients_;
  Regathered regathered_;
  Arriving arriving_;
  bool scattered_ = false;  ///< all but the last part of the linear's result that was made last
  std::vector<Kernel> weight_products_;  ///< put off until their layer's exchange has begun
  std::vector<CastBack> casts_back_;     ///< of the node that runs
  std::vector<std::pair<std::int32_t, ValueId>> releases_;  ///< (op index, value), ascending
  std::size_t next_release_ = 0;
  std::vector<std::pair<ParameterId, StorageId>> weight_casts_;
  std::vector<TapeEvent>* events_ = nullptr;
  std::vector<Kernel>* kernels_ = nullptr;
  std::vector<std::size_t> first_kernels_;    ///< by operation
  std::vector<std::size_t> first_exchanges_;  ///< by operation
  std::size_t flushed_ = 0;                   ///< kernels that an event has named
  bool in_backward_ = false;
  StorageId held_gradient_ = kExternal;  ///< the output's, for as long as a function holds it
  std::int32_t kept_slots_ = 0;          ///< set aside for what a checkpoint keeps for redo
  std::int32_t kept_results_ = 0;        ///< of them used
  TapeRun result_;
};

}  // namespace shardplan
