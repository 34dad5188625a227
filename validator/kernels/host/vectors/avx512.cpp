#include "kernels/host/vectors/loops.h"

namespace shardplan::validator::host {

const Vectors kAvx512Vectors{"AVX-512", adamw, add, squares};

}  // namespace shardplan::validator::host
