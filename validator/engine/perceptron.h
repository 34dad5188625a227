// A multi-layer perceptron's training step on one rank: linear layers with ReLU between them.
#pragma once

#include <memory>

#include "engine/network.h"
#include "model/spec.h"

namespace shardplan::validator {

/// `rows` samples per micro-batch.
std::unique_ptr<Network> make_perceptron(const MlpSpec& spec, std::int64_t rows, DType dtype);

}  // namespace shardplan::validator
