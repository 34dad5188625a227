// Rates moved from the host that they were fitted on to one that was measured.
#include "timing/measured_host.h"

#include <gtest/gtest.h>

namespace shardplan::measured_host_test {
namespace {

MeasuredHost host_of(double python_call) {
  MeasuredHost host;
  host.python_call_seconds = python_call;
  return host;
}

TEST(MeasuredHost, ChangesNothingWhereItIsTheReference) {
  const TimeRates rates;
  const TimeRates same = on_host(rates, host_of(1e-6), host_of(1e-6), Gpu{});
  EXPECT_EQ(same.host.seconds, rates.host.seconds);
  EXPECT_EQ(same.host.phase_seconds, rates.host.phase_seconds);
  EXPECT_EQ(same.links.host, rates.links.host);
}

TEST(MeasuredHost, MultipliesEveryTimeOfTheHostByOneNumber) {
  const TimeRates rates;
  const TimeRates slow = on_host(rates, host_of(3e-6), host_of(2e-6), Gpu{});
  constexpr double kFactor = 1.1;  // calls of one and a half times count for a fifth
  for (std::size_t i = 0; i < kIssues; ++i)
    EXPECT_DOUBLE_EQ(slow.host.seconds[i], kFactor * rates.host.seconds[i]);
  EXPECT_DOUBLE_EQ(slow.host.launch_wait, kFactor * rates.host.launch_wait);
  EXPECT_DOUBLE_EQ(slow.host.collective_seconds, kFactor * rates.host.collective_seconds);
  EXPECT_DOUBLE_EQ(slow.host.phase_seconds, kFactor * rates.host.phase_seconds);
  EXPECT_EQ(slow.host.empty, rates.host.empty) << "a share";
  EXPECT_EQ(slow.host.no_grad, rates.host.no_grad) << "a share";
  EXPECT_EQ(slow.kernels.product.seconds, rates.kernels.product.seconds) << "the GPU's own";
}

TEST(MeasuredHost, TakesTheOptimizerOfTheCpuByItsMemory) {
  const TimeRates rates;
  MeasuredHost host = host_of(1e-6), reference = host_of(1e-6);
  host.memory_bytes_per_second = 50e9;
  const double given = rates.host.deepspeed_adam_elements_per_second;
  EXPECT_EQ(on_host(rates, host, reference, Gpu{}).host.deepspeed_adam_elements_per_second, given)
      << "the reference's memory is unknown";
  reference.memory_bytes_per_second = 100e9;
  const HostRates half = on_host(rates, host, reference, Gpu{}).host;
  EXPECT_DOUBLE_EQ(half.deepspeed_adam_elements_per_second, given / 2);
  EXPECT_DOUBLE_EQ(half.native_adam_bytes_per_second, rates.host.native_adam_bytes_per_second / 2);
  Gpu older;
  older.abilities.host_memory_gbs = 256;
  EXPECT_EQ(on_host(rates, host, reference, older).host.memory_gbs, 256)
      << "what was measured is not the slower memory of such nodes as well";
}

class BesideUsual : public testing::Test {
 protected:
  BesideUsual() {
    rates_.host.usual = {"Hopper", 1.134, {{"one", 1.2}}};
    gpu_.arch = "Hopper";
    gpu_.name = "one";
  }
  double pace(const MeasuredHost& host) const {
    return on_host(rates_, host, host_of(2e-6), gpu_).host.usual.pace_with(gpu_);
  }

  TimeRates rates_;
  Gpu gpu_;
};

/// A host that was measured is not the usual one as well.
TEST_F(BesideUsual, AHostThatIsSlowerStandsInItsPlace) {
  EXPECT_EQ(pace(host_of(5e-6)), 1);  // factor 1.3
  const HostRates slow = on_host(rates_, host_of(5e-6), host_of(2e-6), gpu_).host;
  EXPECT_DOUBLE_EQ(slow.phase_seconds, 1.3 * rates_.host.phase_seconds);
}

TEST_F(BesideUsual, QuickCallsOfPythonAloneDoNotSayThatAHostIsQuicker) {
  EXPECT_EQ(pace(host_of(3e-6)), 1.2);  // factor 1.1
  const HostRates usual = on_host(rates_, host_of(3e-6), host_of(2e-6), gpu_).host;
  EXPECT_EQ(usual.phase_seconds, rates_.host.phase_seconds);
}

TEST_F(BesideUsual, ABlockInPyTorchDoes) {
  MeasuredHost quick = host_of(3e-6);
  quick.block_seconds = 1.3e-3;
  EXPECT_EQ(pace(quick), 1);
  const HostRates host = on_host(rates_, quick, host_of(2e-6), gpu_).host;
  EXPECT_NEAR(host.phase_seconds / rates_.host.phase_seconds, 0.69, 0.01);
}

TEST(MeasuredHost, CopiesAtTheSlowerOfTheTwoRatesMeasured) {
  Gpu gpu;
  gpu.pcie_bandwidth = 64e9;
  MeasuredHost host = host_of(1e-6);
  host.to_gpu_bytes_per_second = 24e9;
  EXPECT_EQ(on_host({}, host, host_of(1e-6), gpu).links.host, LinkRates{}.host) << "only one known";
  host.from_gpu_bytes_per_second = 16e9;
  EXPECT_DOUBLE_EQ(on_host({}, host, host_of(1e-6), gpu).links.host, 0.25);
}

TEST(MeasuredHost, GoesNearlyWithBlocksBetweenSteps) {
  EXPECT_NEAR(host_factor_between_steps(1.96e-3), 1, 1e-12);
  EXPECT_NEAR(host_factor_between_steps(2 * 1.96e-3), 1.88, 0.01);
  EXPECT_NEAR(host_factor_between_steps(1.3e-3), 0.69, 0.01);
}

}  // namespace
}  // namespace shardplan::measured_host_test
