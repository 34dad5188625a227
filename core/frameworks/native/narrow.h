// What the native engine does for a product of a block in 8 bits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "frameworks/native/kernel_parts.h"
#include "frameworks/native/sizes.h"
#include "program/kernel.h"

namespace shardplan {

struct NarrowProduct {
  std::vector<Kernel>
      found;              ///< largest magnitudes of what ranks that share the layer have parts of
  std::int64_t told = 0;  ///< bytes that they gather of them; 0: each has all it needs
  std::vector<Kernel> rest;  ///< scales, casts and products
};

/// Of one pass.
class NarrowWork {
 public:
  NarrowWork(const Native& n, NativeLinear l)
      : n_(n),
        sides_(n.layout.block.sides()[static_cast<std::size_t>(l)]),
        rows_(n.layout.block.of_experts(l) ? n.mean_rows_of_expert() : n.rows),
        matrices_(static_cast<std::int32_t>(n.matrices_at_work(l))),
        by_rows_(n.recipe().by_rows),
        divides_inputs_(n.shares(l) && sums_over_ranks(l)),
        divides_outputs_(n.shares(l) && !sums_over_ranks(l)) {}

  /// y = x wᵀ. `again`: a whole block is done again, of which the engine leaves this product out;
  /// it finds the scales that the backward pass reads.
  NarrowProduct forward(bool again) {
    const auto [outputs, inputs] = sides_;
    const bool joint_x = divides_inputs_, joint_w = joint_x || (divides_outputs_ && !by_rows_);
    const bool reads_w = !again || !by_rows_, reads_x = reads_w && !(again && n_.frozen());
    if (joint_x && reads_x) find(rows_, inputs, rows_);
    if (joint_w && reads_w) find(outputs, inputs, outputs);
    tell();
    cast(rows_, inputs, !joint_x, 1, 0);
    cast(outputs, inputs, !joint_w, 1, 0);
    multiply(rows_, outputs, inputs);
    return std::move(work_);
  }

  /// The gradients of w, unless it is frozen, and of x. Scales of whole matrices are there from the
  /// forward pass.
  NarrowProduct backward() {
    const auto [outputs, inputs] = sides_;
    const bool trained = !n_.frozen(), joint = divides_outputs_;
    if (joint) find(rows_, outputs, rows_);
    if (joint && by_rows_) find(outputs, inputs, inputs);
    tell();
    cast(rows_, outputs, !joint, 1, trained && !by_rows_ ? 1 : 0);
    if (trained) {
      if (by_rows_) cast(rows_, outputs, true, 0, 1);
      cast(rows_, inputs, by_rows_, 0, 1);
      multiply(outputs, inputs, rows_);
    }
    cast(outputs, inputs, by_rows_ && !joint, 0, 1);
    multiply(rows_, inputs, outputs);
    return std::move(work_);
  }

 private:
  void add(Kernel k) {
    k.calls = matrices_;
    work_.rest.push_back(k);
  }
  Kernel few_numbers() const { return pass_over(n_, 1, 64, 16); }
  Kernel search(std::int64_t rows, std::int64_t columns) const {
    return pass_over(n_, rows, n_.width * columns, 1);
  }

  /// This rank's part of the magnitudes of a matrix, or of `scales` rows or columns.
  void find(std::int64_t rows, std::int64_t columns, std::int64_t scales) {
    work_.found.push_back(search(rows, columns));
    work_.found.push_back(few_numbers());
    found_.push_back(by_rows_ ? scales : 1);
  }
  /// The others of them; scales of all.
  void tell() {
    for (const std::int64_t scales : found_) {
      work_.told += 4 * n_.tensor * scales;
      add(pass_over(n_, scales, 4 * n_.tensor + 8, 2));
    }
  }

  /// A matrix in 8 bits, each way 0 or 1 times; `found`: with the scales of all of it, or of the
  /// rows that are written. Those of rows are found by the block that has the row, those of columns
  /// in a pass before.
  void cast(std::int64_t rows, std::int64_t columns, bool found, int straight, int turned) {
    const auto write = [&](std::int64_t copies) {
      add(pass_over(n_, rows, (n_.width + copies) * columns, copies * columns));
    };
    if (!by_rows_) {
      if (found)
        for (const Kernel& k : {search(rows, columns), few_numbers()}) add(k);
      return write(straight + turned);
    }
    if (straight > 0) write(1);
    if (turned == 0) return;
    if (found)
      for (const Kernel& k : {few_numbers(), search(rows, columns), few_numbers()}) add(k);
    write(1);
  }
  void multiply(std::int64_t rows, std::int64_t outputs, std::int64_t inner) {
    Kernel k = product(n_, rows, outputs, inner);
    k.type = n_.recipe().type;
    add(k);
  }

  const Native& n_;
  NativeBlock::Sides sides_;
  std::int64_t rows_;      ///< that one matrix is multiplied with
  std::int32_t matrices_;  ///< alike, one after the other: of experts
  bool by_rows_, divides_inputs_, divides_outputs_;
  std::vector<std::int64_t> found_;  ///< scales of each matrix
  NarrowProduct work_;
};

}  // namespace shardplan
