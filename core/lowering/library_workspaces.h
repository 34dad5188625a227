// Memory that matrix product libraries are given to work in.
#pragma once

#include <cstdint>
#include <vector>

#include "hardware/cluster.h"
#include "lowering/segments.h"
#include "program/program.h"

namespace shardplan {

/// The workspace that PyTorch gives the library of matrix products, for one handle and stream:
/// cuBLAS on NVIDIA's GPUs, hipBLAS on AMD's (aten/src/ATen/cuda/CublasHandlePool.cpp).
std::int64_t cublas_workspace(const Gpu& gpu);
/// The forward thread's and autograd's.
std::int64_t cublas_workspaces(const Gpu& gpu);
void add_cublas_workspaces(ProgramBuilder& b, const Gpu& gpu);
/// Takes them out of `build`: the step's first product asks for them, and they may lie in what
/// building left cached. Autograd's comes with its own first product, where `run` says so.
void make_workspaces_in_first_step(ProgramBuilder& b, std::vector<Event>& build,
                                   const ModelRun& run);

}  // namespace shardplan
