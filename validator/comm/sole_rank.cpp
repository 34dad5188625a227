#include "comm/sole_rank.h"

namespace shardplan::validator {
namespace {

/// Sums of one rank are what they were, so that only copies are left. They run on the compute
/// stream, which made their inputs and reads their results.
class SoleRank final : public Communicator {
 public:
  explicit SoleRank(Backend& backend) : backend_(backend) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(const Tensor& /*x*/) override {}
  void reduce_scatter(const Tensor& shard, const Tensor& full) override { move(shard, full); }
  void all_gather(const Tensor& full, const Tensor& shard) override { move(full, shard); }
  void broadcast(const Tensor& /*x*/, int /*root*/) override {}
  void connect_all() override {}
  void all_to_all(const Tensor& to, const Tensor& from, std::int64_t /*blocks*/) override {
    move(to, from);
  }
  void connect_neighbours() override {}
  void exchange(std::span<const Parcel> /*out*/, std::span<const Parcel> /*in*/) override {}
  std::unique_ptr<Communicator> group(std::span<const int> /*members*/) override {
    return make_sole_communicator(backend_);
  }
  void barrier() override { backend_.synchronize(); }
  void abort() noexcept override {}
  std::int64_t overhead_bytes() const override { return 0; }

 private:
  void move(const Tensor& to, const Tensor& from) {
    if (to.address != from.address) backend_.copy(to, from);
  }

  Backend& backend_;
};

}  // namespace

std::unique_ptr<Communicator> make_sole_communicator(Backend& backend) {
  return std::make_unique<SoleRank>(backend);
}

}  // namespace shardplan::validator
