#include "engine/offload/state_store.h"

namespace shardplan::validator {
namespace {

class ResidentStates final : public StateStore {
 public:
  ResidentStates(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                 const StateKinds& kinds) {
    for (const Unit& unit : units) {
      if (unit.frozen) {
        of_unit_.emplace_back();
        continue;
      }
      const auto tensor = [&](const char* name, Category category, DType dtype) {
        return runtime.host->pageable.allocate(unit.name + "." + name, category, dtype,
                                               {sharding.shard(unit)});
      };
      BucketStates all;
      if (kinds.master) all.master = tensor("master", Category::master_parameters, *kinds.master);
      all.first_moment = tensor("first_moment", Category::optimizer_states, kinds.moments);
      all.second_moment = tensor("second_moment", Category::optimizer_states, kinds.moments);
      of_unit_.push_back(all);
    }
  }

  BucketStates create(int unit, std::int64_t bucket) override { return take(unit, bucket); }
  BucketStates take(int unit, std::int64_t bucket) override {
    const BucketStates& all = at(of_unit_, unit);
    const BucketRange range = bucket_range(all.first_moment.numel(), bucket);
    return {range(all.master), range(all.first_moment), range(all.second_moment)};
  }
  void keep() override {}
  BucketStates look(int unit, std::int64_t bucket) override { return take(unit, bucket); }
  void let_go() override {}
  void settle() override {}

 private:
  std::vector<BucketStates> of_unit_;
};

}  // namespace

std::unique_ptr<StateStore> make_resident_states(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding,
                                                 const StateKinds& kinds) {
  return std::make_unique<ResidentStates>(runtime, units, sharding, kinds);
}

}  // namespace shardplan::validator
