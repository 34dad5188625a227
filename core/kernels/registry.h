// All fused kernels, and which of them Liger-Kernel puts into a network of a model type.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "kernels/description.h"
#include "parallel/problem.h"

namespace shardplan {

/// By KernelName.
std::span<const FusedKernel* const> fused_kernels();

/// What liger_kernel/transformers/monkey_patch.py of version 0.8.5 does to a model type.
struct LigerPatch {
  std::string_view model_type;
  std::uint32_t takes = 0;  ///< names that its function has
  std::uint32_t usual = 0;  ///< those that are on unless told otherwise
  /// Gradients of norms are written over their results' gradients.
  bool norms_in_place = true;
  /// Names that its function takes without effect in transformers 5.
  std::uint32_t without_effect = 0;
  std::uint32_t stops = 0;        ///< names that its function raises an error for
  std::string_view refused = {};  ///< why such a network cannot be estimated; empty: it can
};

/// Null: Liger has nothing for that type, says so at the log level `info`, and PyTorch's kernels
/// run.
const LigerPatch* find_liger_patch(std::string_view model_type);

/// The kernels of a network of that type under `request`; empty where Liger has none for it.
FusedKernels kernels_of(std::string_view model_type, const KernelRequest& request);

/// Why a network of that type cannot run under `request`; nothing when it can.
std::optional<DivisionProblem> kernel_problem(std::string_view model_type,
                                              const KernelRequest& request);

}  // namespace shardplan
