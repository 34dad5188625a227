// The gated delta net (Qwen 3-Next, Qwen 3.5): a state for each head that every token changes.
//
// Two ways of computing it are described: PyTorch's own operations, to which transformers falls
// back where nothing else is installed (torch_chunk_gated_delta_rule, chunks of 64 tokens, one
// after the other), and the kernels of flash-linear-attention.
#pragma once

#include "model/config.h"
#include "model/layers/convolution.h"
#include "model/layers/norms.h"

namespace shardplan {

struct DeltaNetShape {
  std::int64_t hidden = 0;
  std::int64_t key_heads = 0, key_dim = 0, value_heads = 0, value_dim = 0, kernel = 0;
  bool joined_projections = false;  ///< q, k, v and z in one linear, b and a in another
  std::int64_t keys() const { return checked_mul(key_heads, key_dim); }
  std::int64_t values() const { return checked_mul(value_heads, value_dim); }
};

struct DeltaNet {
  DeltaNetShape shape;
  ParameterId time_bias = kNone, decay = kNone;  ///< dt_bias and A_log, one a value head
  Convolution1d convolution;
  LinearModule qkv, z, b, a;  ///< joined: qkv has z's columns too, b those of a
  NormModule norm;
  LinearModule out;
};

/// linear_num_value_heads and its kin; value heads are a multiple of key heads.
DeltaNetShape read_delta_net(const ModelConfig& config, std::int64_t hidden);

/// Registers linear_attn.*, in the order of the class.
DeltaNet delta_net(ModelBuilder& m, const DeltaNetShape& shape);

/// -exp(A_log)·softplus(a + dt_bias), in fp32; `a`: a number a value head of each token.
ValueId decay_of(Graph& g, const ModelBuilder& m, const DeltaNet& d, ValueId a);

/// The layer over x [tokens, hidden].
ValueId apply(Graph& g, const ModelBuilder& m, const DeltaNet& d, ValueId x);

}  // namespace shardplan
