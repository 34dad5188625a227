// Shards in a file are those that were kept, whatever order they are asked for in, and what is on
// its way to the device is not written over.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "device/dry_run.h"
#include "engine/offload/host_shards.h"
#include "kernels/host/host_backend.h"
#include "memory/host_pages.h"
#include "support/subprocess.h"

namespace shardplan::validator::swapped_shards_test {
namespace {

class SwappedShards : public ::testing::Test {
 protected:
  /// An embedding and a head that share a buffer, and five blocks that take turns in two.
  SwappedShards() {
    using Kind = Unit::Kind;
    for (const auto& [kind, elements] : {std::pair{Kind::embedding, 70000},
                                         {Kind::block, 5000},
                                         {Kind::block, 2048},
                                         {Kind::block, 64},
                                         {Kind::block, 4096},
                                         {Kind::block, 640},
                                         {Kind::head, 100}}) {
      Unit unit;
      unit.name = "unit";
      unit.kind = kind;
      unit.numel = elements;
      units_.push_back(unit);
    }
    cores_ = make_dry_host();
    alone_ = make_dry_communicator(0, 1);
    device_ = make_host_backend(0, CopyTime::late);
    vacant_ = device_->new_event();
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    Arena pinned(0, kMost), pageable(0, kMost), nvme(0, kMost), arena(0, kMost);
    HostSide host{*cores_, pinned, pageable, nvme};
    Runtime runtime = runtime_of(arena, &host);
    make_swapped_shards(runtime, units_, kAlone, DType::f32, false, false);
    EXPECT_EQ(pageable.extent(), 0);
    pages_.emplace(pinned.extent(), "buffers");
    pinned_.emplace(pages_->address(), pinned.extent());
    nothing_.emplace(0, 0);
    nvme_.emplace(0, nvme.extent());
    swap_.emplace(StorageOptions{.folder = folder_.path(""), .chunk_bytes = kStorageBlock},
                  nvme.extent());
    host_.emplace(HostSide{*cores_, *pinned_, *nothing_, *nvme_, &*swap_});
    runtime_.emplace(runtime_of(*nothing_, &*host_));
    shards_ = make_swapped_shards(*runtime_, units_, kAlone, DType::f32, false, false);
    for (int u = 0; u < count(); ++u) {
      fill(shards_->create(u), u, 0);
      shards_->keep(u);
    }
  }

  static constexpr Sharding kAlone{.stage = 3};

  Runtime runtime_of(Arena& arena, HostSide* host) {
    return {*device_, *alone_, *alone_, *alone_, *alone_, *alone_, *alone_, *alone_, arena, host};
  }
  int count() const { return static_cast<int>(units_.size()); }
  static float value(int unit, int turn) { return static_cast<float>(100 * unit + turn); }
  static void fill(const Tensor& x, int unit, int turn) {
    std::fill_n(x.as<float>(), x.numel(), value(unit, turn));
  }
  static bool holds(const Tensor& x, int unit, int turn) {
    return std::all_of(x.as<float>(), x.as<float>() + x.numel(),
                       [v = value(unit, turn)](float y) { return y == v; });
  }
  /// Changes a unit as an update does: with what it was, or without.
  void change(int unit, int turn, bool without) {
    const Tensor x = without ? shards_->create(unit) : shards_->take(unit);
    if (!without) {
      EXPECT_TRUE(holds(x, unit, turn - 1)) << "unit " << unit << ", turn " << turn;
    }
    fill(x, unit, turn);
    shards_->keep(unit);
  }

  TemporaryFolder folder_;
  std::vector<Unit> units_;
  std::unique_ptr<Backend> device_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<HostCompute> cores_;
  std::optional<HostPages> pages_;
  std::optional<Arena> pinned_, nothing_, nvme_;
  std::optional<Swap> swap_;
  std::optional<HostSide> host_;
  std::optional<Runtime> runtime_;
  std::unique_ptr<HostShards> shards_;
  Event vacant_ = 0;
};

TEST_F(SwappedShards, come_back_in_any_order) {
  std::vector<int> order(units_.size());
  for (int u = 0; u < count(); ++u) order[static_cast<std::size_t>(u)] = u;
  std::mt19937 random(5);
  for (int turn = 1; turn < 20; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const int u : order) change(u, turn, random() % 2 == 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const int u : order) {
      shards_->expect(static_cast<int>(random() % units_.size()), false);
      EXPECT_TRUE(holds(shards_->look(u), u, turn)) << "unit " << u << ", turn " << turn;
    }
  }
  shards_->settle();
}

/// Copies here are made when something waits for them: what a buffer has next is such a thing.
TEST_F(SwappedShards, on_their_way_to_the_device_are_not_written_over) {
  std::vector<std::vector<float>> there(units_.size());
  for (int turn = 1; turn < 4; ++turn) {
    for (int u = 0; u < count(); ++u) {
      const Tensor x = shards_->look(u);
      std::vector<float>& to = there[static_cast<std::size_t>(u)];
      to.assign(static_cast<std::size_t>(x.numel()), -1);
      shards_->bring(u, {reinterpret_cast<std::uintptr_t>(to.data()), DType::f32, x.shape},
                     vacant_);
      if (turn == 1) shards_->expect((u + 2) % count(), false);
      if (turn == 2) change(u, 2, false);
      if (turn == 3) change(u, 3, true);
    }
    device_->synchronize();
    const int sent = turn == 1 ? 0 : turn - 1;
    if (turn == 1)
      for (int u = 0; u < count(); ++u) change(u, 1, true);
    for (int u = 0; u < count(); ++u)
      for (const float x : there[static_cast<std::size_t>(u)])
        ASSERT_EQ(x, value(u, sent)) << "unit " << u << ", turn " << turn;
  }
}

TEST_F(SwappedShards, are_read_once_where_they_are_expected_and_not_where_they_still_are) {
  shards_->settle();
  const auto read_by = [&](auto&& what) {
    shards_->settle();
    const std::int64_t before = swap_->use().read;
    what();
    shards_->settle();
    return swap_->use().read - before;
  };
  shards_->look(1);
  EXPECT_EQ(read_by([&] { shards_->look(1); }), 0);
  EXPECT_EQ(read_by([&] {
              shards_->expect(2, false);
              shards_->expect(2, false);
              shards_->look(2);
            }),
            2 * kStorageBlock);
  EXPECT_EQ(read_by([&] { change(4, 1, true); }), 0);
  EXPECT_EQ(read_by([&] { change(5, 1, false); }), kStorageBlock);
}

TEST_F(SwappedShards, whose_file_failed_are_not_used) {
  shards_->settle();
  ASSERT_EQ(ftruncate(swap_->file().descriptor(), 0), 0);
  EXPECT_THROW(shards_->look(0), StorageError);
}

}  // namespace
}  // namespace shardplan::validator::swapped_shards_test
