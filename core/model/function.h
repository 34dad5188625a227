// A function that a graph describes as a whole, in place of its operations: one of a library, with
// kernels and a backward pass of its own, or a loop over the tokens of a sequence. What it keeps,
// what lives while it runs, and the kernels that it starts. Parameters that it reads join it
// (Graph::join) as operations of kind `parameter`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/extent.h"

namespace shardplan {

enum class FunctionType : std::uint8_t {
  wide,         ///< fp32
  narrow,       ///< of the function's last input, and of its result
  copied,       ///< a copy in that type of something in fp32: none where that type is fp32
  cast_weight,  ///< the same of a parameter: none where parameters have that type
};

struct FunctionTensor {
  Extent extent;
  FunctionType type = FunctionType::wide;
};

enum class FunctionKernelKind : std::uint8_t {
  sweep,      ///< over whole tensors
  strided,    ///< element by element
  reduction,  ///< over rows
  product,
  call,  ///< the host alone
};

/// Kernels of one kind, one after the other, each of which reads and writes so many elements.
struct FunctionKernels {
  FunctionKernelKind kind = FunctionKernelKind::sweep;
  Extent narrow, wide;
  Extent calls{1, Scale::one};
  Extent m{0, Scale::one};  ///< product: rows of each; n and k, and how many
  std::int64_t n = 0, k = 0;
  Extent batch{1, Scale::one};
};

struct FunctionPass {
  std::vector<FunctionTensor> working;    ///< alive beside inputs, result and gradients
  std::vector<FunctionTensor> workspace;  ///< the same, asked for at once by a library
  std::vector<FunctionKernels> kernels;
};

struct Function {
  std::string_view name;
  std::array<bool, 3> saves{};       ///< the inputs of that place
  std::vector<FunctionTensor> kept;  ///< beside them
  FunctionPass forward, backward;
};

/// The same over a part of its heads or channels: tensors are as much smaller, and of products
/// there are fewer. `part`: of a number.
template <typename Part>
Function over_columns(Function f, Part&& part) {
  const auto narrow = [&](Extent& extent) { extent.per = part(extent.per); };
  for (FunctionTensor& tensor : f.kept) narrow(tensor.extent);
  for (FunctionPass* pass : {&f.forward, &f.backward}) {
    for (FunctionTensor& tensor : pass->working) narrow(tensor.extent);
    for (FunctionTensor& tensor : pass->workspace) narrow(tensor.extent);
    for (FunctionKernels& k : pass->kernels) {
      narrow(k.narrow);
      narrow(k.wide);
      if (k.kind == FunctionKernelKind::product) narrow(k.batch);
    }
  }
  return f;
}

}  // namespace shardplan
