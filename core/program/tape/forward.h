// The forward pass: what each operation reads, makes and keeps, and when names die.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "program/tape/name_lifetimes.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// The storages that an operation reads its inputs from, and their types: after casts. The
/// operation owns a reference to each.
struct Operands {
  std::array<StorageId, 3> storage{kExternal, kExternal, kExternal};
  std::array<DType, 3> type{};
  std::size_t count = 0;
};

/// What autograd's node `i` keeps until its backward has run. `as_math`: attention by separate
/// products, which has saved what it keeps.
void save_for_backward(Parts& p, std::size_t i, const Operands& read, bool as_math);

class ForwardPass {
 public:
  explicit ForwardPass(Parts& parts) : p_(parts), ends_(name_ends(parts.graph(), parts.mode)) {}
  void run();

 private:
  void step(std::size_t i);
  void run_operation(std::size_t i);
  void dispatch_in_python(const Op& op, const TapeWriter::Mark& before, std::int32_t saved);
  void alias(const Op& op);
  void compute(std::size_t i);
  Operands read_inputs(const Op& op);
  StorageId contiguous(const Op& op, std::size_t k, DType type);
  /// The copy that nothing but the call holds, if there is one.
  StorageId cast_weight(std::size_t i, bool input_needs_grad);
  void repeat_heads(const Op& op, Operands& read);
  bool widens_output(const Op& op) const;
  void launch(const Op& op, DType type);
  void hold_input(const Op& op, StorageId input);
  void make_result(const Op& op, const Operands& read, bool attends, DType type);
  std::array<StorageId, 2> temporaries_of_places(const Op& op);
  StorageId mask_that_goes(const Op& op);
  /// Node `i` keeps casts to fewer bits, its own or those of a linear before it.
  void save_narrow(std::size_t i, const std::vector<StorageId>& kept);
  void launch_product(const Op& op, DType type);
  void drop_names(std::size_t i);
  void stop_early();
  void host_reads_lengths();
  bool is_told(const Op& op) const;
  bool begins_head(const Op& op) const;
  void end();
  void export_output();

  Parts& p_;
  std::vector<NameEnd> ends_;
  std::size_t next_end_ = 0;
  /// bitsandbytes' Linear4bit has a name for its input in the type of the product, until what that
  /// made is cast back to the input's (nn/modules.py 0.50, forward).
  StorageId called_with_ = kExternal;
  std::vector<TapeWriter::Mark> starts_;                     ///< by operation
  std::map<ValueId, std::vector<StorageId>> narrow_inputs_;  ///< kept, with TapeOptions::casts_once
};

}  // namespace shardplan::tape
