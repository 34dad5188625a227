// cuFile as fake_cufile.cpp has it: what is loaded, registered and moved, what is said where it
// fails, and that nothing is left of it.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "kernels/host/host_backend.h"
#include "memory/host_pages.h"
#include "storage/rates.h"
#include "storage/swap.h"
#include "support/subprocess.h"

namespace shardplan::validator::cufile_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class Cufile : public ::testing::Test {
 protected:
  Cufile() { unsetenv("FAKE_CUFILE"); }
  ~Cufile() override {
    unsetenv("FAKE_CUFILE");
    void* library = dlopen(SHARDPLAN_FAKE_CUFILE, RTLD_NOW);
    auto* left = reinterpret_cast<long (*)()>(dlsym(library, "fake_cufile_left"));
    EXPECT_EQ(left(), 0) << "drivers, files and buffers are left";
  }
  static void let_fail(const char* how) { setenv("FAKE_CUFILE", how, 1); }

  StorageOptions options(const std::string& library = SHARDPLAN_FAKE_CUFILE) const {
    // Without direct I/O: the real library moves any size on a file that is open for it.
    return {.folder = folder_.path(""),
            .chunk_bytes = 64 * kStorageBlock,
            .queue_depth = 4,
            .path = IoPath::cufile,
            .direct = false,
            .cufile = library};
  }
  Swap make(const StorageOptions& options, std::int64_t bytes = 4 * kMiB) {
    return {options, std::make_shared<SwapFile>(options.folder, bytes, options.direct), &*device_};
  }
  std::string failure_of(const StorageOptions& options) {
    return failure_of([&] { make(options); });
  }
  static std::string failure_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const StorageError& error) {
      return error.what();
    }
    return "";
  }
  /// Writes and reads a range of an odd size at an odd place, and compares.
  void expect_comes_back(Swap& swap) const {
    constexpr std::int64_t kBytes = 3 * kMiB + 700;
    HostPages pages(2 * 4 * kMiB, "test");
    const auto from = pages.span().subspan(128, kBytes),
               to = pages.span().subspan(4 * kMiB, kBytes);
    std::mt19937 random(7);
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    swap.use(pages.span());
    swap.wait(swap.write(kStorageBlock, from));
    swap.wait(swap.read(kStorageBlock, to));
    EXPECT_TRUE(std::ranges::equal(from, to));
    EXPECT_EQ(swap.use().read, kBytes);
    EXPECT_EQ(swap.use().written, kBytes);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Backend> device_ = make_host_backend();
};

TEST_F(Cufile, brings_back_what_was_written_also_bit_by_bit) {
  for (const char* how : {"", "short", "no buffers"}) {
    let_fail(how);
    Swap swap = make(options());
    expect_comes_back(swap);
    EXPECT_THAT(swap.description(),
                AllOf(StartsWith("cuFile 1.17, compatibility mode (no nvidia-fs"),
                      HasSubstr("4 requests of 256 KiB")));
  }
}

TEST_F(Cufile, says_which_of_its_modes_it_is_in_and_what_is_not_registered) {
  let_fail("direct");
  EXPECT_THAT(make(options()).description(), StartsWith("cuFile 1.17, direct (nvidia-fs 2.26)"));
  let_fail("no buffers");
  Swap swap = make(options());
  HostPages pages(kMiB, "test");
  swap.use(pages.span());
  EXPECT_THAT(swap.description(), HasSubstr("memory unregistered (more of the GPU's memory"));
}

TEST_F(Cufile, that_is_not_there_or_does_not_open_is_said) {
  EXPECT_THAT(failure_of(options(folder_.path("libnone.so"))),
              AllOf(HasSubstr("cufile is asked for; no cuFile"), HasSubstr("libnone.so"),
                    HasSubstr("nvidia-cufile"), HasSubstr("run.nvme.cufile")));
  EXPECT_THAT(failure_of(options("libm.so.6")), HasSubstr("libm.so.6 has no cuFileDriverOpen"));
  const std::pair<const char*, const char*> all[] = {
      {"no driver", "cuFile's driver does not open: nvidia-fs is not loaded"},
      {"no cuda", "the CUDA driver's error 100"},
      {"no file", "does not take the swap file: the file system is not supported (5008)"}};
  for (const auto& [how, words] : all) {
    let_fail(how);
    EXPECT_THAT(failure_of(options()), AllOf(HasSubstr(folder_.path("")), HasSubstr(words)));
  }
}

TEST_F(Cufile, transfer_that_fails_says_why) {
  HostPages pages(kMiB, "test");
  const std::pair<const char*, const char*> all[] = {{"fails", "input or output failed (5044)"},
                                                     {"errno", "Input/output error"}};
  for (const auto& [how, words] : all) {
    Swap swap = make(options());
    let_fail(how);
    const std::string why = failure_of([&] { swap.wait(swap.read(0, pages.span())); });
    EXPECT_THAT(why, AllOf(HasSubstr("reading"), HasSubstr(words)));
    let_fail("");
  }
  Swap swap = make(options(), 8 * kStorageBlock);
  EXPECT_THAT(failure_of([&] { swap.wait(swap.read(0, pages.span())); }),
              HasSubstr("the file ends there"));
}

TEST_F(Cufile, takes_a_file_that_keeps_no_name) {
  Swap swap = make(options());
  EXPECT_TRUE(std::filesystem::is_empty(options().folder));
  expect_comes_back(swap);
}

TEST_F(Cufile, is_opened_once_for_all_who_have_it) {
  Swap first = make(options());
  {
    Swap second = make(options());
    expect_comes_back(second);
  }
  expect_comes_back(first);
}

TEST_F(Cufile, may_be_closed_while_much_is_under_way) {
  HostPages pages(4 * kMiB, "test");
  StorageOptions small = options();
  small.chunk_bytes = kStorageBlock;
  Swap swap = make(small);
  (void)swap.write(0, pages.span());
}

TEST_F(Cufile, is_timed_beside_the_other_paths_or_alone) {
  StorageRatesOptions timed{.folder = folder_.path(""),
                            .bytes = std::int64_t{256} << 20,
                            .seconds = 0.01,
                            .chunk_bytes = {1 << 20},
                            .queue_depths = {4, 8},
                            .cufile = SHARDPLAN_FAKE_CUFILE,
                            .device = &*device_};
  const auto tell = [](const StorageRate&) {};
  const StorageRates all = measure_storage(timed, tell);
  EXPECT_EQ(all.rates.back().how, "cufile");
  EXPECT_EQ(all.rates.back().queue_depth, 8);
  EXPECT_GT(all.rates.back().read, 1e6);
  EXPECT_THAT(all.cufile, StartsWith("cuFile 1.17"));
  EXPECT_NE(all.usual().how, "cufile");
  timed.only = IoPath::cufile;
  EXPECT_EQ(measure_storage(timed, tell).usual().how, "cufile");
  timed.device = nullptr;
  EXPECT_THAT(failure_of([&] { measure_storage(timed, tell); }), HasSubstr("none can be used"));
  timed.only.reset();
  const StorageRates without = measure_storage(timed, tell);
  ASSERT_FALSE(without.absent.empty());
  EXPECT_EQ(without.absent.back().how, "cufile");
}

}  // namespace
}  // namespace shardplan::validator::cufile_test
