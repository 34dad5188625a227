// List prices: of a machine that is named, and of GPUs that some machine has.
#include "hardware/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/resolve.h"
#include "load/hardware.h"

namespace shardplan::prices_test {
namespace {

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = load_hardware_catalog();
  return kCatalog;
}

Instance machine(std::string name, std::int64_t gpus, double price,
                 std::optional<double> spot = std::nullopt) {
  Instance row;
  row.name = name;
  row.gpu = "G";
  row.gpus = gpus;
  row.price = ListPrice{.provider = "P",
                        .machine = name,
                        .as_of = "2026-01-01",
                        .on_demand = price,
                        .spot = spot,
                        .gpus = gpus,
                        .of_gpus = gpus};
  return row;
}

TEST(ListPrices, AMachineOfThatSizeComesBeforeACheaperShare) {
  HardwareCatalog three;
  three.instances = {machine("dear", 4, 20), machine("right", 4, 16, 6), machine("large", 8, 24)};
  const auto four = list_price_of("G", 4, three);
  ASSERT_TRUE(four);
  EXPECT_EQ(four->machine, "right");
  EXPECT_EQ(four->on_demand, 16);
  EXPECT_EQ(four->spot, 6);
  EXPECT_FALSE(four->same_machine);
}

TEST(ListPrices, OtherwiseTheShareOfTheCheapestGpus) {
  HardwareCatalog two;
  two.instances = {machine("small", 4, 16), machine("large", 8, 24, 8)};
  const auto two_gpus = list_price_of("G", 2, two);
  ASSERT_TRUE(two_gpus);
  EXPECT_EQ(two_gpus->machine, "large");
  EXPECT_EQ(two_gpus->on_demand, 6);
  EXPECT_EQ(two_gpus->spot, 2);
  EXPECT_EQ(two_gpus->gpus, 8);
  EXPECT_EQ(two_gpus->of_gpus, 2);
}

TEST(ListPrices, AreNoneWithoutAPricedMachine) {
  HardwareCatalog one;
  one.instances = {machine("small", 4, 16)};
  one.instances[0].price.reset();
  EXPECT_FALSE(list_price_of("G", 4, one));
  EXPECT_FALSE(list_price_of("other", 4, catalog()));
}

TEST(ListPrices, ANamedMachineHasItsOwn) {
  const Cluster named = resolve_cluster("2xp5.48xlarge", catalog());
  ASSERT_TRUE(named.list_price);
  EXPECT_EQ(named.list_price->machine, "p5.48xlarge");
  EXPECT_TRUE(named.list_price->same_machine);
  EXPECT_FALSE(named.price_per_hour);  // which only a job says
  const Cluster gpus = resolve_cluster("8xH100", catalog());
  ASSERT_TRUE(gpus.list_price);
  EXPECT_FALSE(gpus.list_price->same_machine);
  EXPECT_EQ(gpus.list_price->gpus, 8);
  EXPECT_FALSE(resolve_cluster("4x40GB", catalog()).list_price);
}

TEST(Reliability, IsThatOfThePublishedClusterUntilTheNvmeIsKnown) {
  const Cluster gpus = resolve_cluster("2x8xH100", catalog());
  ASSERT_TRUE(gpus.checkpoint_storage && gpus.failures);
  EXPECT_EQ(gpus.checkpoint_storage->source, Source::assumed);
  EXPECT_NEAR(gpus.failures->node_hours, 5696, 1);  // of eight GPUs
  EXPECT_EQ(gpus.failures->counted_on, "Llama 3 405B");
  const Cluster machine = resolve_cluster("Standard_NC96ads_A100_v4", catalog());
  EXPECT_EQ(machine.checkpoint_storage->source, Source::measured);
  EXPECT_EQ(machine.checkpoint_storage->write_bandwidth, 5e9);
  EXPECT_NEAR(machine.failures->node_hours, 2 * 5696, 2);
}

}  // namespace
}  // namespace shardplan::prices_test
