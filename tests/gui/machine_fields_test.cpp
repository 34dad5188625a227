// Every figure of the machine can be changed, says where it comes from, and changes no other.
#include "models/machine_fields.h"

#include <gtest/gtest.h>

#include "gui_testing.h"

namespace shardplan::gui {
namespace {

class MachineFieldsTest : public testing::TestWithParam<const char*> {
 protected:
  void ask_again() {
    session_.document().start_new();
    session_.document().set("/cluster", GetParam());
    session_.document().set("/model", "gpt2");
  }
  const Cluster& cluster() const { return *session_.answer().the_cluster(); }
  std::vector<QString> shown(const std::vector<MachineField>& fields) {
    std::vector<QString> out;
    for (const MachineField& f : fields) out.push_back(f.text_of(cluster()));
    return out;
  }

  Session session_;
};

TEST_P(MachineFieldsTest, EachCanBeChangedAndChangesNoOther) {
  const std::vector<MachineField> fields = MachineFields::all();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    ask_again();
    if (!fields[i].can_be_said(cluster())) continue;
    const std::vector<QString> before = shown(fields);
    // Links that nobody named follow from the GPU and how many of them share a node.
    const bool links_follow = cluster().interconnect_source == Source::assumed;
    const QString wanted = fields[i].whole ? QStringLiteral("3") : QStringLiteral("17.5");
    ASSERT_TRUE(fields[i].commit(session_, wanted)) << fields[i].pointer;
    ASSERT_NE(session_.answer().the_cluster(), nullptr) << fields[i].pointer;
    EXPECT_FALSE(session_.answer().error) << session_.answer().error->message.text;
    EXPECT_EQ(fields[i].standing(session_), MachineFields::given()) << fields[i].pointer;
    const std::vector<QString> after = shown(fields);
    for (std::size_t j = 0; j < fields.size(); ++j) {
      const bool is_link = fields[j].pointer.find("interconnect") != std::string::npos;
      if (j != i && is_link && links_follow) continue;
      EXPECT_EQ(after[j].toStdString(), (j == i ? wanted : before[j]).toStdString())
          << fields[i].pointer << " changed " << fields[j].pointer;
    }
  }
}

TEST_P(MachineFieldsTest, EachSaysWhereItsValueComesFrom) {
  ask_again();
  for (const MachineField& f : MachineFields::all()) {
    EXPECT_FALSE(f.standing(session_).isEmpty()) << f.pointer;
    const bool is_known = !f.text_of(*session_.answer().the_cluster()).isEmpty();
    EXPECT_EQ(f.standing(session_) != MachineFields::not_known(), is_known) << f.pointer;
  }
}

TEST_P(MachineFieldsTest, WhatIsNoFigureChangesNothing) {
  for (const MachineField& f : MachineFields::all()) {
    ask_again();
    const Json job = session_.document().json();
    for (const char* bad : {"-1", "0", "many", "nan", "inf", "1e300", "1 2"}) {
      EXPECT_FALSE(f.commit(session_, QString::fromUtf8(bad))) << f.pointer << " " << bad;
      EXPECT_EQ(session_.document().json(), job) << f.pointer << " " << bad;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, MachineFieldsTest,
                         testing::Values("4xA100-40GB", "2x8xH100", "p4d.24xlarge", "4x40GB"));

}  // namespace
}  // namespace shardplan::gui
