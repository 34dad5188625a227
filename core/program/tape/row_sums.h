// Sums of gradients over the rows of what was broadcast: weights of norms, biases.
#pragma once

#include <cstdint>

#include "program/tape/parts.h"

namespace shardplan::tape {

/// Bytes that PyTorch's reduction keeps beside its result while it adds `rows` rows of `columns`:
/// blocks of threads each add a part of the rows and leave their sums, of fp32, to the last one.
/// 0: one block adds all rows (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig and
/// global_memory_size; seen in histories of allocations on H100 and H200).
std::int64_t row_sum_scratch(std::int64_t rows, std::int64_t columns, std::int64_t multiprocessors);

/// The gradient of a bias that `rows` rows were given: a sum over them, kept by the caller.
void sum_rows(Parts& p, std::int64_t rows, std::int64_t columns);

/// The same of a parameter that `op` views as one for each row, as Falcon's biases are added.
void sum_repeated(Parts& p, const Op& op);

/// Whether `op` multiplies elements and broadcasts its input `k` to do so.
bool broadcasts_factor(const Parts& p, const Op& op, std::size_t k);

/// `wide`, the gradient as the product's node gave it, gets the shape and the type of input `k`: a
/// new tensor. It goes.
void fit_to_factor(Parts& p, const Op& op, std::size_t k, StorageId wide);

/// The gradient of a table: of more than 3,072 tokens the kernel sorts them, adds up to ten rows of
/// one token in fp32 at a time, and then these sums; their number is what it could be at most
/// (aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu; one history of allocations has it).
void sum_segments(Parts& p, const Op& op);
/// The gradient of an embedding's table.
void give_table(Parts& p, const Op& op);

}  // namespace shardplan::tape
