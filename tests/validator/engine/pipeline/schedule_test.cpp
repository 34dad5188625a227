// Schedules of pipelines as data: what every stage does, played through without a network.
#include "engine/pipeline/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace shardplan::validator::pipeline_schedule_test {
namespace {

using Order = PipelineSchedule;

struct Case {
  Pipeline pipeline;
  std::int64_t micro_batches = 1;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int stages : {1, 2, 3, 4, 5, 8}) {
    for (const std::int64_t micro_batches : {1, 2, 3, 4, 7, 8, 19}) {
      all.push_back({{stages, 1, Order::one_f_one_b}, micro_batches});
      all.push_back({{stages, 1, Order::gpipe}, micro_batches});
    }
    for (const int chunks : {2, 3, 4})
      for (const std::int64_t rounds : {1, 2, 3, 5})
        if (stages > 1) all.push_back({{stages, chunks, Order::interleaved}, rounds * stages});
  }
  return all;
}

std::string words(const Case& c) {
  return fmt::format("{} stages × {} chunks, {}, {} micro-batches", c.pipeline.stages,
                     c.pipeline.chunks, name_of(c.pipeline.order), c.micro_batches);
}

/// "F0 F1 B0": passes with their micro-batches; with chunks, "F1.0" is micro-batch 0 in chunk 1.
std::string passes(const Case& c, int stage) {
  std::string text;
  for (const Turn& turn : schedule_of(c.pipeline, stage, c.micro_batches))
    for (const Pass& p : turn.passes)
      text += fmt::format("{}{}{}{}", text.empty() ? "" : " ",
                          p.kind == Pass::Kind::forward ? 'F' : 'B',
                          c.pipeline.chunks > 1 ? fmt::format("{}.", p.chunk) : "", p.micro_batch);
  return text;
}

TEST(PipelineSchedule, is_that_of_the_papers) {
  const Case plain{{2, 1, Order::one_f_one_b}, 3};
  EXPECT_EQ(passes(plain, 0), "F0 F1 B0 F2 B1 B2");
  EXPECT_EQ(passes(plain, 1), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(passes({{4, 1, Order::one_f_one_b}, 5}, 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(passes({{2, 1, Order::gpipe}, 3}, 0), "F0 F1 F2 B0 B1 B2");
  const Case chunks{{2, 2, Order::interleaved}, 4};
  EXPECT_EQ(passes(chunks, 1),
            "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
  EXPECT_EQ(passes({{}, 2}, 0), "F0 B0 F1 B1");
}

TEST(PipelineSchedule, takes_every_micro_batch_once_through_every_chunk) {
  for (const Case& c : cases())
    for (int stage = 0; stage < c.pipeline.stages; ++stage) {
      std::set<std::pair<int, std::int64_t>> gone, back;
      for (const Turn& turn : schedule_of(c.pipeline, stage, c.micro_batches))
        for (const Pass& p : turn.passes) {
          const std::pair at{p.chunk, p.micro_batch};
          if (p.kind == Pass::Kind::forward) {
            EXPECT_TRUE(gone.insert(at).second) << words(c);
          } else {
            EXPECT_TRUE(gone.contains(at)) << words(c);
            EXPECT_TRUE(back.insert(at).second) << words(c);
          }
        }
      const auto all = static_cast<std::size_t>(c.pipeline.chunks * c.micro_batches);
      EXPECT_EQ(gone.size(), all) << words(c);
      EXPECT_EQ(back.size(), all) << words(c);
    }
}

TEST(PipelineSchedule, keeps_no_more_on_its_way_than_the_order_allows) {
  for (const Case& c : cases())
    for (int stage = 0; stage < c.pipeline.stages; ++stage) {
      const auto turns = schedule_of(c.pipeline, stage, c.micro_batches);
      std::map<int, std::pair<int, std::int64_t>> holders;  // by slot
      for (const Turn& turn : turns)
        for (const Pass& p : turn.passes) {
          const std::pair at{p.chunk, p.micro_batch};
          if (p.kind == Pass::Kind::forward) {
            EXPECT_TRUE(holders.emplace(p.slot, at).second) << words(c);
          } else {
            EXPECT_EQ(holders.at(p.slot), at) << words(c);
            holders.erase(p.slot);
          }
        }
      EXPECT_TRUE(holders.empty());
      const Pipeline& p = c.pipeline;
      const int after = p.stages - 1 - stage;
      const std::int64_t all = c.micro_batches * p.chunks;
      std::int64_t most = all;
      if (p.order == Order::one_f_one_b) most = after + 1;
      if (p.order == Order::interleaved) most = 2 * after + (p.chunks - 1) * p.stages + 1;
      EXPECT_EQ(slots_of(turns), std::min(most, all)) << words(c) << ", stage " << stage;
    }
}

/// What is on its way: of which chunk of the network, which micro-batch, and in which direction.
using Label = std::tuple<int, std::int64_t, Pass::Kind>;

/// Of what a pass reads.
Label read_by(const Pipeline& p, int stage, const Pass& pass) {
  return {pass.chunk * p.stages + stage, pass.micro_batch, pass.kind};
}
/// The same pass of the next chunk of the network, or of the one before, reads what this one makes.
Label made_by(const Pipeline& p, int stage, const Pass& pass) {
  const int step = pass.kind == Pass::Kind::forward ? 1 : -1;
  return {pass.chunk * p.stages + stage + step, pass.micro_batch, pass.kind};
}

/// A stage in its step: the turn whose messages are exchanged, and what of them is still to come.
struct Player {
  std::vector<Turn> turns;
  std::size_t turn = 0;
  std::vector<Message> out, in;

  bool done() const { return turn == turns.size(); }
  void open() {
    if (done()) return;
    out = turns[turn].out;
    in = turns[turn].in;
  }
};

/// Plays all stages, with messages that are given only when the other side takes them, each
/// stage's in their order. Returns whether all come to the end.
bool play(const Case& c) {
  const Pipeline& p = c.pipeline;
  std::vector<Player> players;
  for (int stage = 0; stage < p.stages; ++stage) {
    players.push_back({schedule_of(p, stage, c.micro_batches), 0, {}, {}});
    players.back().open();
  }
  const auto player = [&](int stage) -> Player& {
    return players[static_cast<std::size_t>(stage)];
  };
  const auto hand_over = [&](int stage) {
    Player& to = player(stage);
    if (to.done() || to.in.empty()) return false;
    const Message& wanted = to.in.front();
    Player& from = player(wanted.peer);
    const auto given = std::find_if(from.out.begin(), from.out.end(),
                                    [&](const Message& m) { return m.peer == stage; });
    if (from.done() || given == from.out.end()) return false;
    EXPECT_EQ(made_by(p, wanted.peer, given->pass), read_by(p, stage, wanted.pass)) << words(c);
    from.out.erase(given);
    to.in.erase(to.in.begin());
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < p.stages; ++stage) {
      while (hand_over(stage)) moved = true;
      Player& here = player(stage);
      while (!here.done() && here.out.empty() && here.in.empty()) {
        ++here.turn;
        here.open();
        moved = true;
      }
    }
  }
  return std::all_of(players.begin(), players.end(), [](const Player& one) { return one.done(); });
}

TEST(PipelineSchedule, gives_every_stage_what_it_reads_and_never_waits_in_a_circle) {
  for (const Case& c : cases()) EXPECT_TRUE(play(c)) << words(c);
}

TEST(PipelineSchedule, sends_between_neighbours_alone) {
  for (const Case& c : cases())
    for (int stage = 0; stage < c.pipeline.stages; ++stage)
      for (const Turn& turn : schedule_of(c.pipeline, stage, c.micro_batches))
        for (const auto* list : {&turn.out, &turn.in})
          for (const Message& m : *list) {
            const int distance = (m.peer - stage + c.pipeline.stages) % c.pipeline.stages;
            EXPECT_TRUE(distance == 1 || distance == c.pipeline.stages - 1) << words(c);
          }
}

}  // namespace
}  // namespace shardplan::validator::pipeline_schedule_test
