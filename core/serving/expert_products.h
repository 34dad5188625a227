// Products of experts as an engine's own kernel makes them: vLLM's and SGLang's, in Triton, sorts
// the rows by expert and gives each expert whole tiles of rows.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "rollout/engine.h"
#include "timing/kernel_time.h"

namespace shardplan {

/// A layer's experts on one GPU. None: 0 of each.
struct LayerExperts {
  double experts = 0;
  double of_token = 0;  ///< that take each token
  bool shared = false;  ///< others beside them that all tokens take
};

LayerExperts experts_of(const Segment& segment, const Model& model);

/// What a pass asks of them in one product: k inputs and n outputs an expert.
struct ExpertProduct : LayerExperts {
  double tokens = 0;  ///< of the pass
  double n = 0, k = 0;
  double bytes = 2;       ///< of an element of the weights
  bool gathered = false;  ///< its operands are the tokens' own rows, read where they lie
};

/// Those of the GPU that gets most rows, of `ranks` that divide them whole, in a pass of so many
/// tokens: a token goes to K different ones, all alike, so that a GPU's rows are a hypergeometric
/// sum with the mean T K / R and the variance T K (1 - 1/R) (E - K) / (R (E - 1)).
LayerExperts experts_of_slowest(const LayerExperts& all, double ranks, double tokens);

/// A product of such experts, of whose weights each GPU has its columns or its rows elsewhere: the
/// first of a layer is divided by its results, those behind it by their inputs.
Kernel of_whole_experts(Kernel product, std::int64_t ranks, bool first);

/// Experts that at least one of so many tokens goes to, each to `of_token` different ones, all
/// alike: E (1 - (1 - K/E)^T).
double experts_hit(const ExpertProduct& product);

/// Tiles of `rows` rows that all experts fill, where an expert's rows are Poisson's:
/// E sum over r of P(r) ceil(r / rows).
double expert_tiles(const ExpertProduct& product, std::int64_t rows);

/// Seconds on a GPU whose tensor cores reach `peak` operations a second in the product's type and
/// whose memory moves `memory` bytes. Tiles are computed whole; the memory's and the tensor cores'
/// time are neither hidden behind each other nor added: the root of the sum of their squares.
double expert_seconds(const ExpertProduct& product, const ExpertKernel& kernel, double peak,
                      double memory);

/// The same of weights in few bits that are widened in the product.
double widened_expert_seconds(const ExpertProduct& product, const WidenedExperts& kernel,
                              double peak, double memory);

}  // namespace shardplan
