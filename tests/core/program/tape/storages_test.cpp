#include "program/tape/storages.h"

#include <gtest/gtest.h>

#include "program/tape/autocast_cache.h"
#include "program/tape/module_offloading.h"
#include "program/tape/offloading.h"
#include "program/tape/saved_tensors.h"

namespace shardplan::tape {
namespace {

using Kind = TapeEvent::Kind;

struct Fixture {
  explicit Fixture(TapeMode mode = TapeMode::keep, std::int32_t kept = 0)
      : writer(run, mode, false), storages(writer, mode, kept) {}
  TapeRun run;
  TapeWriter writer;
  Storages storages;
};

TEST(Storages, LiveFromTheirAllocationToTheLastReference) {
  Fixture f;
  const StorageId id = f.storages.allocate(1000, Category::activations);
  f.storages.ref(id);
  f.storages.unref(id);
  ASSERT_EQ(f.run.forward.size(), 1U);
  EXPECT_EQ(f.run.forward[0].kind, Kind::alloc);
  EXPECT_EQ(f.run.forward[0].bytes, 1024);  // two units
  f.storages.unref(id);
  ASSERT_EQ(f.run.forward.size(), 2U);
  EXPECT_EQ(f.run.forward[1].kind, Kind::free);
  EXPECT_EQ(f.run.forward[1].bytes, 1024);
  EXPECT_EQ(f.run.forward[1].id, f.run.forward[0].id);
}

TEST(Storages, IgnoreWhatOthersOwn) {
  Fixture f;
  f.storages.ref(kExternal);
  f.storages.unref(kExternal);
  EXPECT_TRUE(f.run.forward.empty());
  EXPECT_TRUE(f.storages.is_shared(kExternal));
}

TEST(Storages, FreeInItsOwnSlotWhatWasThereBefore) {
  Fixture f;
  const StorageId input = f.storages.adopt(2048, kChainedInputSlot, Category::activations);
  EXPECT_TRUE(f.run.forward.empty());
  f.storages.unref(input);
  ASSERT_EQ(f.run.forward.size(), 1U);
  EXPECT_EQ(f.run.forward[0].id, kChainedInputSlot);
}

TEST(Storages, LeaveAnExportedOneToWhoeverGetsIt) {
  Fixture f;
  const StorageId id = f.storages.allocate(512, Category::activations);
  f.storages.set_exported(id);
  f.storages.unref(id);
  EXPECT_EQ(f.run.forward.size(), 1U);
  EXPECT_EQ(f.storages.free_event(id).kind, Kind::free);
}

TEST(Storages, AreFoundByTheRecomputationUnderTheSlotOfTheForwardPass) {
  Fixture forward(TapeMode::discard, 2);
  forward.storages.allocate(512, Category::activations);
  const StorageId kept = forward.storages.allocate_kept(512, Category::activations);
  forward.storages.unref(kept);
  EXPECT_EQ(forward.run.forward.size(), 2U);  // it stays
  EXPECT_EQ(forward.run.forward[0].id, 2);    // kept ones come first

  Fixture redo(TapeMode::redo, 2);
  const StorageId found = redo.storages.allocate_kept(512, Category::activations);
  EXPECT_TRUE(redo.run.backward.empty());
  redo.storages.unref(found);
  ASSERT_EQ(redo.run.backward.size(), 1U);
  EXPECT_EQ(redo.run.backward[0].id, forward.run.forward[1].id);
}

TEST(SavedTensors, KeepTheirReferencesUntilReleased) {
  Fixture f;
  Offloading nothing(f.storages, f.writer, ActivationOffloading::none);
  const Graph graph;
  ModuleOffloading no_modules(f.storages, f.writer, graph, {}, 2);
  SavedTensors saved(3, f.storages, nothing, no_modules);
  EXPECT_EQ(saved.end(), 0U);
  const StorageId id = f.storages.allocate(512, Category::activations);
  saved.move_in(1, id);
  saved.save(1, kExternal);
  EXPECT_EQ(saved.count(1), 1U);
  EXPECT_EQ(saved.end(), 2U);
  EXPECT_EQ(f.run.forward.size(), 1U);
  saved.release(1);
  EXPECT_EQ(f.run.forward.size(), 2U);
  EXPECT_EQ(saved.end(), 2U);  // it has saved
  saved.save_resident(2);
  EXPECT_EQ(saved.end(), 3U);
  EXPECT_EQ(saved.count(2), 0U);
}

TEST(AutocastCache, LeavesToTheCallerOnlyWhatNobodyElseHolds) {
  Fixture f;
  AutocastCache cache;
  EXPECT_EQ(cache.find(7), kExternal);
  const StorageId alone = f.storages.allocate(512, Category::other);
  const StorageId saved = f.storages.allocate(1024, Category::other);
  f.storages.ref(saved);
  cache.add(7, alone);
  cache.add(8, saved);
  EXPECT_EQ(cache.find(8), saved);
  const std::vector<TapeEvent> later = cache.close(f.storages, false);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].bytes, 512);
  EXPECT_EQ(f.run.forward.size(), 2U);  // neither was freed
  f.storages.unref(saved);
  EXPECT_EQ(f.run.forward.back().bytes, 1024);
}

}  // namespace
}  // namespace shardplan::tape
