#include "save/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/diagnostic.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

std::ptrdiff_t count_in(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(StagedFiles, ComeIntoBeingTogether) {
  const TemporaryFolder folder;
  StagedFiles files;
  files.add(folder.path("a"), "one");
  files.add(folder.path("b"), "two", StagedFiles::Mode::program);
  EXPECT_FALSE(fs::exists(folder.path("a")));
  files.place();
  EXPECT_EQ(text_of(folder.path("a")), "one");
  EXPECT_EQ(text_of(folder.path("b")), "two");
  EXPECT_NE(fs::status(folder.path("b")).permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(count_in(folder.path("")), 2);
}

TEST(StagedFiles, LeaveNothingWhereOneCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string old = folder.file("old", "kept");
  {
    StagedFiles files;
    files.add(old, "new");
    EXPECT_THROW(files.add(folder.path("no/such"), "x"), InputError);
  }
  EXPECT_EQ(text_of(old), "kept");
  EXPECT_EQ(count_in(folder.path("")), 1);
}

TEST(WriteFile, SurvivesALoopOfLinks) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder.path("a"));
  fs::create_symlink("a", folder.path("b"));
  EXPECT_THROW(write_file(folder.path("a"), "x"), InputError);
  EXPECT_TRUE(fs::is_symlink(folder.path("a")));
}

TEST(CheckWritable, LeavesEverythingAsItWas) {
  const TemporaryFolder folder;
  const std::string old = folder.file("old", "kept");
  check_writable(old);
  check_writable(folder.path("new"));
  EXPECT_THROW(check_writable(folder.path("no/such")), InputError);
  EXPECT_EQ(text_of(old), "kept");
  EXPECT_EQ(count_in(folder.path("")), 1);
}

}  // namespace
}  // namespace shardplan
