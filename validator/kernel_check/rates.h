// How long operations of the CUDA back end take over a range of shapes, for `shardplan calibrate`.
#pragma once

#include <string>

namespace shardplan::validator {

/// A record of rates (shardplan.rates/1, docs/explanation/time.md): attention that cuDNN has no
/// kernel for, forward and backward. Takes about ten seconds.
std::string rates_record();

}  // namespace shardplan::validator
