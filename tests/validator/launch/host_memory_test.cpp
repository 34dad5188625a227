// Memory of the host that is not there is said before anything runs.
#include "launch/host_memory.h"

#include <gmock/gmock.h>

#include "device/errors.h"
#include "kernels/host/crew/host_crew.h"
#include "kernels/host/host_backend.h"

namespace shardplan::validator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(HostMemory, beyond_what_the_kernel_leaves_is_refused_for_all_ranks_together) {
  const std::int64_t there = host_bytes_available();
  ASSERT_GT(there, 64 * kMiB);
  EXPECT_NO_THROW(check_host_memory({kMiB, kMiB}, 2, 0));
  EXPECT_THAT(
      refusal([&] {
        check_host_memory({there / 4, there / 4}, 3, 0);
      }),
      AllOf(HasSubstr("out of memory: 3 ranks of this host need"), HasSubstr("are available")));
  EXPECT_THROW(check_host_memory({there, there}, 1, 0), OutOfMemory);
}

TEST(HostMemory, beyond_what_the_user_allows_is_refused) {
  EXPECT_NO_THROW(check_host_memory({kMiB, kMiB}, 1, 2 * kMiB));
  EXPECT_THAT(refusal([&] {
                check_host_memory({kMiB, kMiB}, 1, 2 * kMiB - 1);
              }),
              HasSubstr("each rank needs 2.00 MiB of its host (1.00 MiB pinned"));
}

TEST(HostMemory, that_the_device_does_not_pin_is_said) {
  const auto device = make_host_backend(kMiB);
  const auto cores = make_host_crew({0, 1});
  EXPECT_THAT(refusal([&] {
                RankHostMemory(*device, *cores, {2 * kMiB, 0});
              }),
              HasSubstr("the host does not pin 2.00 MiB"));
  EXPECT_THROW(RankHostMemory(*device, *cores, {2 * kMiB, 0}), DeviceError);
}

TEST(HostMemory, that_the_kernel_does_not_map_is_said) {
  EXPECT_THAT(refusal([] { HostPages(std::int64_t{1} << 60, "moments"); }),
              AllOf(HasSubstr("out of memory: the host has no"), HasSubstr("for moments")));
}

TEST(HostMemory, grows_the_process_when_it_is_written) {
  const auto device = make_host_backend();
  const auto cores = make_host_crew({0, 1});
  const std::int64_t before = host_bytes_resident();
  RankHostMemory memory(*device, *cores, {64 * kMiB, 64 * kMiB});
  const std::int64_t grown = host_bytes_resident() - before;
  EXPECT_GE(grown, 64 * kMiB);  // pinned memory is written at once, pageable memory by its owner
  EXPECT_LT(grown, 72 * kMiB);
}

}  // namespace
}  // namespace shardplan::validator
