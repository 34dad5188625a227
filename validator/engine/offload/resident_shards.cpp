#include "engine/offload/host_shards.h"

namespace shardplan::validator {
namespace {

class ResidentShards final : public HostShards {
 public:
  ResidentShards(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                 DType dtype)
      : device_(runtime.device) {
    for (const Unit& unit : units)
      of_unit_.push_back(runtime.host->pinned.allocate(unit.name + ".parameters",
                                                       Category::parameters, unit.stored_as(dtype),
                                                       {sharding.shard(unit)}));
  }

  Tensor look(int unit) override { return at(of_unit_, unit); }
  Tensor create(int unit) override { return at(of_unit_, unit); }
  Tensor take(int unit) override { return at(of_unit_, unit); }
  void keep(int) override {}
  Arrival bring(int unit, const Tensor& to, Event vacant) override {
    device_.wait(Stream::to_device, vacant);
    device_.send(to, look(unit));
    return Arrival::enqueued;
  }
  void land(int) override {}
  void store(int unit, const Tensor& from, Event written) override {
    fetch_shard(device_, create(unit), from, written);
  }
  void expect(int, bool) override {}
  void use(const Tensor&) override {}
  void settle() override {}

 private:
  Backend& device_;
  std::vector<Tensor> of_unit_;
};

}  // namespace

std::unique_ptr<HostShards> make_resident_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding, DType dtype) {
  return std::make_unique<ResidentShards>(runtime, units, sharding, dtype);
}

}  // namespace shardplan::validator
