// Who is to blame for a run that does not go on, of what is known about its processes.
#include "comm/loss.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace shardplan::validator::loss_test {
namespace {

using namespace std::chrono_literals;

/// Four ranks on two nodes, a process each, that have all just been heard of.
class LossOf : public ::testing::Test {
 protected:
  LossOf() {
    evidence_.roster = {0, {{0, 1, "a"}, {1, 1, "a"}, {2, 1, "b"}, {3, 1, "b"}}};
    evidence_.members.assign(4, Watched{});
    for (Watched& w : evidence_.members) w.heard = now_;
    evidence_.ranks.assign(4, {Activity::backward, 7});
    evidence_.silence = 20s;
  }
  Watched& member(std::size_t m) { return evidence_.members[m]; }
  void suspects(std::size_t m, int of) {
    member(m).suspects = true;
    member(m).suspect = of;
    evidence_.suspected = now_;
  }
  std::string text(std::chrono::milliseconds later) const {
    const auto loss = evidence_.judge(now_ + later);
    return loss ? loss->text : "";
  }

  Instant now_{1000s};
  Evidence evidence_;
};

TEST_F(LossOf, nobody_is_none) {
  EXPECT_EQ(text(0s), "");
  EXPECT_EQ(text(19s), "");
}

TEST_F(LossOf, a_node_names_all_its_ranks) {
  member(2).ended = now_;
  EXPECT_EQ(text(0s), "");  // others of its node may end too
  member(3).ended = now_ + 100ms;
  EXPECT_EQ(text(1s), "ranks 2, 3 on b are lost: their processes ended (step 7, backward)");
}

TEST_F(LossOf, silent_ranks_names_those_that_fell_silent_together) {
  member(1).heard = now_ + 30s;
  member(2).heard = now_ - 400ms;
  member(3).heard = now_;
  EXPECT_EQ(text(19s), "");
  EXPECT_EQ(text(21s), "ranks 2, 3 on b are lost: nothing was heard for 20 s (step 7, backward)");
}

TEST_F(LossOf, a_rank_that_said_why_is_named_before_those_that_ended_of_it) {
  member(3).left = now_;
  member(3).why = "out of memory: no room";
  member(3).ended = now_ + 10ms;
  member(2).ended = now_ + 20ms;
  EXPECT_EQ(text(20ms), "rank 3 on b is lost: out of memory: no room (step 7, backward)");
}

TEST_F(LossOf, a_chain_of_waiting_ranks_names_its_end) {
  suspects(0, 2);
  suspects(1, 0);
  suspects(2, 3);
  EXPECT_EQ(text(1s), "");  // the last one may still complain of another
  EXPECT_EQ(text(2s), "rank 3 on b is lost: others waited for 20 s (step 7, backward)");
  // One that is silent is named whoever waits for whom.
  member(1).heard = now_ - 21s;
  EXPECT_EQ(text(2s), "rank 1 on a is lost: nothing was heard for 20 s (step 7, backward)");
}

TEST_F(LossOf, ranks_that_cannot_tell_names_who_does_not_wait) {
  for (const std::size_t m : {0U, 1U, 3U}) suspects(m, -1);
  EXPECT_EQ(text(2s), "rank 2 on b is lost: others waited for 20 s (step 7, backward)");
}

TEST_F(LossOf, ranks_that_wait_in_a_circle_names_none) {
  for (std::size_t m = 0; m < 4; ++m) suspects(m, static_cast<int>((m + 1) % 4));
  const auto loss = evidence_.judge(now_ + 2s);
  EXPECT_TRUE(loss->report.at("lost").empty());
  EXPECT_EQ(loss->text,
            "no rank goes on, and none can be told to have begun it: others waited for 20 s");
}

TEST_F(LossOf, the_first_process_is_seen_by_the_others) {
  evidence_.roster.mine = 2;
  for (Watched& w : evidence_.members) w.heard = now_ - 100s;  // only the first is listened to
  member(0).heard = now_;
  EXPECT_EQ(text(19s), "");
  EXPECT_EQ(text(21s), "rank 0 on a is lost: nothing was heard for 20 s (step 7, backward)");
}

}  // namespace
}  // namespace shardplan::validator::loss_test
