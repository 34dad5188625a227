// The failure of a training run itself.
#pragma once

#include <stdexcept>

namespace shardplan::validator {

/// The loss or the gradients are not numbers any more: exit code 6.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace shardplan::validator
