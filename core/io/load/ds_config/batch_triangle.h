// train_batch_size = micro-batch x accumulation x ranks, closed as DeepSpeed closes it.
#pragma once

#include <cstdint>
#include <optional>

#include "load/ds_config/context.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/values.h"

namespace shardplan {

struct BatchTriangle {
  std::optional<std::int64_t> train_batch;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> accumulation;
};

/// Two of the three give the third by integer division, one alone means an accumulation of 1, and
/// the product must then be exact (runtime/config.py _set_batch_related_parameters,
/// _batch_assertion). The ranks are world / sequence_parallel_size. Stays open where the world is
/// not known or elasticity chooses the batch.
BatchTriangle close_batch_triangle(const DsValues& values, const DsConfigContext& context,
                                   DsFindings& findings);

}  // namespace shardplan
