// What is written comes back whole, or it is an error; nothing is left behind.
#include "storage/swap.h"

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <random>

#include "memory/host_pages.h"
#include "support/subprocess.h"

namespace shardplan::validator::swap_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "";
}

void fill(std::span<std::byte> memory, std::uint32_t seed) {
  std::mt19937 random(seed);
  for (std::byte& b : memory) b = static_cast<std::byte>(random());
}

/// Where liburing or the kernel has none, both are threads.
class EveryPath : public ::testing::TestWithParam<IoPath> {
 protected:
  StorageOptions options(std::int64_t chunk = kMiB, int depth = 8, bool direct = true) const {
    return {folder_.path(""), chunk, depth, GetParam(), direct};
  }
  TemporaryFolder folder_;
};

TEST_P(EveryPath, brings_back_what_was_written) {
  constexpr std::int64_t kRange = 67 * kStorageBlock, kRanges = 5;
  HostPages memory(kRange * kRanges, "test");
  const auto range = [&](std::int64_t i) {
    return memory.span().subspan(static_cast<std::size_t>(i * kRange),
                                 static_cast<std::size_t>(kRange));
  };
  for (const bool direct : {true, false})
    for (const auto& [chunk, depth] : {std::pair{kStorageBlock, 1},
                                       {kStorageBlock, 64},
                                       {kStorageBlock * 16, 3},
                                       {16 * kMiB, 8}}) {
      Swap swap(options(chunk, depth, direct), kRanges * kRange);
      std::vector<Transfer> transfers;
      for (std::int64_t i = 0; i < kRanges; ++i) {
        fill(range(i), static_cast<std::uint32_t>(i));
        transfers.push_back(swap.write((kRanges - 1 - i) * kRange, range(i)));
      }
      for (const Transfer& t : transfers) swap.wait(t);
      fill(memory.span(), 99);
      for (std::int64_t i = 0; i < kRanges; ++i)
        swap.wait(swap.read((kRanges - 1 - i) * kRange, range(i)));
      HostPages expected(kRange, "test");
      for (std::int64_t i = 0; i < kRanges; ++i) {
        fill(expected.span(), static_cast<std::uint32_t>(i));
        EXPECT_TRUE(std::ranges::equal(range(i), expected.span()))
            << swap.description() << ", range " << i;
      }
      EXPECT_EQ(swap.use().read, kRanges * kRange);
      EXPECT_EQ(swap.use().written, kRanges * kRange);
      EXPECT_GT(swap.use().busy_seconds, 0);
    }
}

TEST_P(EveryPath, has_no_name_in_the_folder_and_takes_its_room_at_once) {
  const Swap swap(options(), 16 * kMiB);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("")));
  struct stat status {};
  ASSERT_EQ(fstat(swap.file().descriptor(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 16 * kMiB);
}

TEST_P(EveryPath, does_not_take_half_a_range_for_a_whole_one) {
  Swap swap(options(), 8 * kMiB);
  HostPages memory(8 * kMiB, "test");
  swap.wait(swap.write(0, memory.span()));
  ASSERT_EQ(ftruncate(swap.file().descriptor(), 3 * kMiB), 0);
  EXPECT_THAT(
      failure_of([&] { swap.wait(swap.read(0, memory.span())); }),
      AllOf(HasSubstr(folder_.path("")), HasSubstr("reading"), HasSubstr("the file ends there")));
}

TEST_P(EveryPath, says_what_could_not_be_written) {
  Swap swap(options(), 8 * kMiB);
  HostPages memory(8 * kMiB, "test");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{static_cast<rlim_t>(2 * kMiB), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string failure = failure_of([&] { swap.wait(swap.write(0, memory.span())); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_THAT(failure, AllOf(HasSubstr(folder_.path("")), HasSubstr("writing"),
                             HasSubstr("of the swap file failed: File too large")));
}

TEST_P(EveryPath, may_be_closed_while_much_is_under_way) {
  HostPages memory(32 * kMiB, "test");
  Swap swap(options(kStorageBlock, 2), 32 * kMiB);
  const Transfer transfer = swap.write(0, memory.span());
  (void)transfer;
}

INSTANTIATE_TEST_SUITE_P(Swap, EveryPath, ::testing::Values(IoPath::automatic, IoPath::threads),
                         [](const auto& p) {
                           return p.param == IoPath::threads ? "threads" : "automatic";
                         });

TEST(SwapFile, in_a_folder_that_does_not_do_is_refused) {
  const TemporaryFolder folder;
  const auto refused = [](const std::string& where, std::int64_t bytes = kMiB) {
    return failure_of([&] { SwapFile(where, bytes, true); });
  };
  EXPECT_THAT(refused(folder.path("missing")),
              AllOf(HasSubstr(folder.path("missing")), HasSubstr("No such file or directory"),
                    HasSubstr("1.00 MiB are needed there, 0 B are free")));
  EXPECT_THAT(refused(folder.file("file", "x")), HasSubstr("not a folder"));
  EXPECT_THAT(refused("/proc"), HasSubstr("/proc: no file can be made there"));
  EXPECT_THAT(refused(folder.path(""), std::int64_t{1} << 60),
              AllOf(HasSubstr("too little room for the swap file"), HasSubstr("are needed there"),
                    HasSubstr("are free")));
  if (geteuid() == 0) return;  // nothing is read-only to root
  std::filesystem::permissions(
      folder.path(""), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THAT(refused(folder.path("")), HasSubstr("Permission denied"));
}

/// Makes io_uring_setup fail for this process, as containers' filters of system calls do.
bool forbid_uring() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Uring, that_is_forbidden_gives_way_to_threads_and_that_is_said) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_uring()) _exit(77);
    const StorageOptions any{.folder = folder.path("")};
    Swap swap(any, kMiB);
    HostPages memory(kMiB, "test");
    swap.wait(swap.write(0, memory.span()));
    swap.wait(swap.read(0, memory.span()));
    StorageOptions only = any;
    only.path = IoPath::io_uring;
    const bool said = swap.description().starts_with("pread and pwrite (");
    const bool refused = !failure_of([&] { Swap(only, kMiB); }).empty();
    _exit(said && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace shardplan::validator::swap_test
