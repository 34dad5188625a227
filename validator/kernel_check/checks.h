// What is checked: every operation of the back end, one function a family.
#pragma once

#include "kernel_check/laboratory.h"

namespace shardplan::validator {

/// Sizes that the laboratory's workspace must do for.
StepShapes largest_checked();

void check_elements(Laboratory& lab, DType dtype);
void check_linear(Laboratory& lab, DType dtype);
void check_norms(Laboratory& lab, DType dtype);
void check_head_norms(Laboratory& lab, DType dtype);
void check_rotary(Laboratory& lab, DType dtype);
void check_activations(Laboratory& lab, DType dtype);
void check_adapters(Laboratory& lab, DType dtype);
void check_attention(Laboratory& lab, DType dtype);
void check_embedding(Laboratory& lab, DType dtype);
void check_experts(Laboratory& lab, DType dtype);
void check_fp8(Laboratory& lab, DType dtype);
void check_loss(Laboratory& lab, DType dtype);
void check_sums(Laboratory& lab, DType dtype);
void check_adamw(Laboratory& lab, DType dtype);

/// NCCL over all GPUs of this host, and ranks that share one; prints a line per rank and returns
/// how many were wrong.
int check_collectives();

}  // namespace shardplan::validator
