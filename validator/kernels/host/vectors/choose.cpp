#include <algorithm>
#include <vector>

#include "kernels/host/vectors/vectors.h"

namespace shardplan::validator::host {
namespace {

#ifdef SHARDPLAN_X86_VECTORS
bool runs_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
}
bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}
#endif

}  // namespace

std::span<const Vectors* const> vectors_of_this_machine() {
  static const std::vector<const Vectors*> kHere = [] {
    std::vector<const Vectors*> here;
#ifdef SHARDPLAN_X86_VECTORS
    if (runs_avx512()) here.push_back(&kAvx512Vectors);
    if (runs_avx2()) here.push_back(&kAvx2Vectors);
#endif
    here.push_back(&kScalarVectors);
    return here;
  }();
  return kHere;
}

double chunk_of_squares(const Vectors& vectors, const Tensor& chunk) {
  Lanes lanes{};
  vectors.squares(lanes, chunk.data(), chunk.dtype, chunk.numel());
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

double sum_of_squares(const Vectors& vectors, const Tensor& x) {
  double total = 0;
  for (std::int64_t at = 0; at < x.numel(); at += kSumChunk)
    total += chunk_of_squares(vectors, x.slice(at, std::min(kSumChunk, x.numel() - at)));
  return total;
}

}  // namespace shardplan::validator::host
