#include "kernels/host/vectors/loops.h"

namespace shardplan::validator::host {

const Vectors kAvx2Vectors{"AVX2", adamw, add, squares};

}  // namespace shardplan::validator::host
