// The loss of rows of logits, of whose columns each of the ranks that share a layer has a part.
#pragma once

#include "engine/tensor_ranks.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Rows of logits that are alive at once: the loss is computed in chunks of at most about
/// kLogitBytes.
inline constexpr std::int64_t kLogitBytes = std::int64_t{512} << 20;
std::int64_t logit_rows(std::int64_t rows, std::int64_t padded_vocabulary, DType dtype);

class LossRows {
 public:
  /// Allocates what ranks tell each other of at most `most_rows` rows. `spec` of this rank's part.
  LossRows(Arena& arena, const TensorRanks& ranks, const DecoderSpec& spec, DType dtype,
           std::int64_t most_rows);

  /// As Backend::cross_entropy; `rows.vocabulary` is known here.
  void compute(const CrossEntropy& rows) const;

 private:
  const TensorRanks& ranks_;
  const DecoderSpec& spec_;
  Tensor parts_;  ///< [ranks · most rows, 3]
};

}  // namespace shardplan::validator
