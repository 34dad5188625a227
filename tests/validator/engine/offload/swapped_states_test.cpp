// States in a file are those that were kept, whatever order they are asked for in.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "comm/sole_rank.h"
#include "device/dry_run.h"
#include "engine/offload/state_store.h"
#include "memory/host_pages.h"
#include "support/subprocess.h"

namespace shardplan::validator::swapped_states_test {
namespace {

struct Place {
  int unit;
  std::int64_t bucket;
};

class SwappedStates : public ::testing::Test {
 protected:
  /// Units of whole and broken buckets; more buckets than buffers.
  SwappedStates() {
    for (const std::int64_t elements :
         {2 * kBucketElements + 64, std::int64_t{640}, kBucketElements, std::int64_t{64}}) {
      Unit unit;
      unit.name = "unit";
      unit.numel = elements;
      for (std::int64_t b = 0; b < buckets_of(elements); ++b)
        places_.push_back({static_cast<int>(units_.size()), b});
      units_.push_back(unit);
    }
    device_ = make_dry_backend([](const StepShapes&) { return std::int64_t{0}; });
    alone_ = make_dry_communicator(0, 1);
    cores_ = make_dry_host();
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    Arena pinned(0, kMost), pageable(0, kMost), nvme(0, kMost), arena(0, kMost);
    HostSide host{*cores_, pinned, pageable, nvme};
    Runtime runtime = runtime_of(arena, &host);
    make_swapped_states(runtime, units_, Sharding{}, kKinds);
    EXPECT_EQ(pageable.extent(), 0);
    pages_.emplace(pinned.extent(), "buffers");
    pinned_.emplace(pages_->address(), pinned.extent());
    nothing_.emplace(0, 0);
    nvme_.emplace(0, nvme.extent());
    swap_.emplace(StorageOptions{.folder = folder_.path("")}, nvme.extent());
    host_.emplace(HostSide{*cores_, *pinned_, *nothing_, *nvme_, &*swap_});
    runtime_.emplace(runtime_of(*nothing_, &*host_));
    states_ = make_swapped_states(*runtime_, units_, Sharding{}, kKinds);
  }

  static constexpr StateKinds kKinds{DType::f32, DType::bf16};

  Runtime runtime_of(Arena& arena, HostSide* host) {
    return {*device_, *alone_, *alone_, *alone_, *alone_, *alone_, *alone_, *alone_, arena, host};
  }
  /// Every element says where it is and how often it was written.
  static void write(const BucketStates& s, const Place& p, int turn) {
    const auto n = static_cast<std::size_t>(s.master.numel());
    const auto value = static_cast<float>(1000 * p.unit + 100 * p.bucket + turn);
    std::fill_n(s.master.as<float>(), n, value);
    std::fill_n(s.first_moment.as<std::uint16_t>(), n, static_cast<std::uint16_t>(value));
    std::fill_n(s.second_moment.as<std::uint16_t>(), n, static_cast<std::uint16_t>(value + 7));
  }
  static bool holds(const BucketStates& s, const Place& p, int turn) {
    const auto n = s.master.numel();
    const auto value = static_cast<float>(1000 * p.unit + 100 * p.bucket + turn);
    const auto all = [n](auto* x, auto v) {
      return std::all_of(x, x + n, [v](auto y) { return y == v; });
    };
    return all(s.master.as<float>(), value) &&
           all(s.first_moment.as<std::uint16_t>(), static_cast<std::uint16_t>(value)) &&
           all(s.second_moment.as<std::uint16_t>(), static_cast<std::uint16_t>(value + 7));
  }
  void create_all() {
    for (const Place& p : places_) {
      write(states_->create(p.unit, p.bucket), p, 0);
      states_->keep();
    }
    states_->settle();
  }
  void turn(int number) {
    for (const Place& p : places_) {
      const BucketStates s = states_->take(p.unit, p.bucket);
      EXPECT_TRUE(holds(s, p, number - 1))
          << "turn " << number << ", unit " << p.unit << ", bucket " << p.bucket;
      write(s, p, number);
      states_->keep();
    }
  }

  TemporaryFolder folder_;
  std::vector<Unit> units_;
  std::vector<Place> places_;
  std::unique_ptr<Backend> device_;
  std::unique_ptr<Communicator> alone_;
  std::unique_ptr<HostCompute> cores_;
  std::optional<HostPages> pages_;
  std::optional<Arena> pinned_, nothing_, nvme_;
  std::optional<Swap> swap_;
  std::optional<HostSide> host_;
  std::optional<Runtime> runtime_;
  std::unique_ptr<StateStore> states_;
};

TEST_F(SwappedStates, come_back_in_any_order) {
  create_all();
  int number = 0;
  for (int i = 0; i < 3; ++i) turn(++number);
  std::reverse(places_.begin(), places_.end());
  for (int i = 0; i < 2; ++i) turn(++number);
  std::mt19937 random(3);
  for (int i = 0; i < 6; ++i) {
    std::shuffle(places_.begin(), places_.end(), random);
    turn(++number);
  }
  states_->settle();
}

TEST_F(SwappedStates, are_read_and_written_once_a_step_in_an_order_that_stays) {
  create_all();
  std::swap(places_[0], places_[3]);
  turn(1);  // learns the order
  turn(2);
  const auto of_a_turn = [&](int number) {
    states_->settle();
    const StorageUse before = swap_->use();
    turn(number);
    states_->settle();
    const StorageUse after = swap_->use();
    EXPECT_EQ(after.written - before.written, swap_->file().bytes());
    return after.read - before.read;
  };
  // What is read ahead for the next step is as much as was for this one, once it is there.
  std::int64_t read = 0;
  for (int i = 3; i < 8; ++i) read += of_a_turn(i);
  EXPECT_LE(read, 6 * swap_->file().bytes());
  EXPECT_GE(read, 4 * swap_->file().bytes());
}

TEST_F(SwappedStates, can_be_made_anew) {
  create_all();
  turn(1);
  turn(2);
  create_all();
  turn(1);
}

TEST_F(SwappedStates, whose_file_failed_are_not_used) {
  create_all();
  turn(1);
  states_->settle();
  ASSERT_EQ(ftruncate(swap_->file().descriptor(), 0), 0);
  EXPECT_THROW(
      {
        for (int i = 2; i < 4; ++i) turn(i);
      },
      StorageError);
}

}  // namespace
}  // namespace shardplan::validator::swapped_states_test
