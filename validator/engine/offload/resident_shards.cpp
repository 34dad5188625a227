#include "engine/offload/host_shards.h"

namespace shardplan::validator {
namespace {

class ResidentShards final : public HostShards {
 public:
  ResidentShards(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                 DType dtype) {
    for (const Unit& unit : units)
      of_unit_.push_back(runtime.host->pinned.allocate(unit.name + ".parameters",
                                                       Category::parameters, unit.stored_as(dtype),
                                                       {sharding.shard(unit)}));
  }

  Tensor look(int unit) override { return at(of_unit_, unit); }
  Tensor create(int unit) override { return at(of_unit_, unit); }
  Tensor take(int unit) override { return at(of_unit_, unit); }
  void keep(int) override {}
  void sending(int) override {}
  void expect(int) override {}
  void settle() override {}

 private:
  std::vector<Tensor> of_unit_;
};

}  // namespace

std::unique_ptr<HostShards> make_resident_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding, DType dtype) {
  return std::make_unique<ResidentShards>(runtime, units, sharding, dtype);
}

}  // namespace shardplan::validator
