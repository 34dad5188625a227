#include "kernels/host/crew/host_crew.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "kernels/host/adamw_factors.h"
#include "kernels/host/crew/crew.h"
#include "kernels/host/kernels.h"
#include "kernels/host/vectors/vectors.h"

namespace shardplan::validator {
namespace {

using namespace host;

class HostCrew final : public HostCompute {
 public:
  explicit HostCrew(const RankShare& share)
      : crew_(cpus_of(share)), vectors_(*vectors_of_this_machine().front()) {}

  std::string description() const override {
    return fmt::format("{}, {} thread{}", vectors_.name, crew_.size(),
                       crew_.size() == 1 ? "" : "s");
  }

  void zero(const Tensor& x) override {
    crew_.split(x.numel(), [&](std::int64_t first, std::int64_t count) {
      const Tensor part = x.slice(first, count);
      std::memset(part.data(), 0, static_cast<std::size_t>(part.bytes()));
    });
  }
  void cast(const Tensor& to, const Tensor& from) override {
    crew_.split(to.numel(), [&](std::int64_t first, std::int64_t count) {
      host::cast(to.slice(first, count), from.slice(first, count));
    });
  }
  void add(const Tensor& to, const Tensor& x) override {
    crew_.split(to.numel(), [&](std::int64_t first, std::int64_t count) {
      vectors_.add(to.slice(first, count).data(), x.slice(first, count).data(), to.dtype, count);
    });
  }
  double squared_norm(const Tensor& x) override {
    const std::int64_t chunks = ceil_div(x.numel(), kSumChunk);
    sums_.resize(static_cast<std::size_t>(chunks));
    crew_.split(chunks * Crew::kPart, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t c = first / Crew::kPart; c < (first + count) / Crew::kPart; ++c) {
        const std::int64_t at = c * kSumChunk;
        sums_[static_cast<std::size_t>(c)] =
            chunk_of_squares(vectors_, x.slice(at, std::min(kSumChunk, x.numel() - at)));
      }
    });
    double total = 0;
    for (const double sum : sums_) total += sum;
    return total;
  }
  void adamw(const AdamW& o) override {
    const auto factors = adamw_factors(o);
    if (!factors) return;
    crew_.split(o.parameter.numel(), [&](std::int64_t first, std::int64_t count) {
      vectors_.adamw(adamw_range(o, *factors, first, count));
    });
  }

 private:
  Crew crew_;
  const Vectors& vectors_;
  std::vector<double> sums_;  ///< of chunks
};

}  // namespace

std::unique_ptr<HostCompute> make_host_crew(const RankShare& share) {
  return std::make_unique<HostCrew>(share);
}

}  // namespace shardplan::validator
