#include "cli/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "save/file.h"

namespace shardplan::validator {
namespace {

std::string path_of(const FailureReport& place, int rank) {
  if (rank == 0) return place.record + ".failure.json";
  return fmt::format("{}.rank{}.failure.json", place.record, rank);
}

bool first_is_lost(const Loss& loss) {
  const Json lost = loss.report.value("lost", Json::array());
  return lost.empty() || std::any_of(lost.begin(), lost.end(),
                                     [](const Json& rank) { return rank.at("rank") == 0; });
}

void leave_report(const Lookout& lookout, const FailureReport& place, const Loss& loss) {
  const Roster& roster = lookout.roster();
  const Member& me = roster.members[static_cast<std::size_t>(roster.mine)];
  if (place.record.empty() || (roster.mine != 0 && !first_is_lost(loss))) return;
  Json report = loss.report;
  report["command"] = place.command;
  report["told_by"] = {{"rank", me.first_rank}, {"node", me.node}};
  try {
    write_file(path_of(place, me.first_rank), report.dump(1) + "\n");
  } catch (const InputError& e) {
    // The failure itself is what is told; a full disk may be that failure.
    fmt::print(stderr, "shardplan-validate: no report is left: {}\n", e.what());
  }
}

}  // namespace

void run_together(const std::shared_ptr<Lookout>& lookout, const FailureReport& place,
                  const std::function<void()>& body) {
  if (!lookout) return body();
  const Roster& roster = lookout->roster();
  if (!place.record.empty()) {
    std::error_code none;  // one of an earlier run
    std::filesystem::remove(
        path_of(place, roster.members[static_cast<std::size_t>(roster.mine)].first_rank), none);
  }
  try {
    body();
  } catch (const PeerFailure& e) {
    const Loss loss = lookout->judge(e);
    leave_report(*lookout, place, loss);
    throw PeerFailure(loss.text, e.rank);
  } catch (const std::exception& e) {
    leave_report(*lookout, place, lookout->leave(e.what()));
    throw;
  }
}

void await_end(Lookout& lookout, int first_rank, int count, std::int64_t steps) {
  for (int r = first_rank; r < first_rank + count; ++r) lookout.at(r, Activity::report, steps);
  lookout.release();
}

}  // namespace shardplan::validator
