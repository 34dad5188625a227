#include "kernels/host/vectors/loops.h"

namespace shardplan::validator::host {

const Vectors kScalarVectors{"scalar", adamw, add, squares};

}  // namespace shardplan::validator::host
