#include "render/simulation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// Seconds and starts of one kind of work.
struct Share {
  std::string what;
  double seconds = 0;
  std::int64_t count = 0;
};

/// Largest first; equal ones by name.
std::vector<Share> shares_of(const SimulatedRank& rank) {
  std::map<std::string, Share> by_name;
  for (const Span& span : rank.trace.spans) {
    const Event& e = rank.program->events[span.event];
    const std::string name = span.kernel != nullptr ? std::string(name_of(span.kernel->kind))
                             : e.kind == Event::Kind::host_optimizer ? "optimizer on the host"
                                                                     : std::string(e.what);
    Share& share = by_name[name];
    share.what = name;
    share.seconds += span.seconds;
    share.count += span.kernel != nullptr ? span.kernel->calls : e.count;
  }
  std::vector<Share> shares;
  for (auto& [name, share] : by_name) shares.push_back(std::move(share));
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.seconds > b.seconds; });
  return shares;
}

std::array<std::pair<const char*, double>, 6> parts_of(const StepTimes& t) {
  return {{{"computing", t.compute},
           {"optimizer", t.optimizer},
           {"waiting for other GPUs", t.exposed_communication},
           {"waiting for copies", t.exposed_copies},
           {"waiting for other pipeline stages", t.bubble},
           {"waiting for the host to start kernels", t.idle}}};
}

}  // namespace

std::string simulation_text(const SimulatedRank& rank) {
  const StepTimes& times = rank.times;
  TextTable parts({Align::left, Align::right, Align::right});
  for (const auto& [what, seconds] : parts_of(times))
    if (seconds > 0)
      parts.add(
          {what, format_seconds(seconds), fmt::format("{:.1f} %", 100 * seconds / times.step)});
  TextTable work({Align::left, Align::right, Align::right});
  work.add({"", "time", "started"});
  for (const Share& s : shares_of(rank))
    work.add({s.what, format_seconds(s.seconds), format_count(s.count)});
  return fmt::format("{}: {} in {}; at datasheet rates it could not take less than {}\n", rank.name,
                     rank.what, format_seconds(times.step), format_seconds(times.ideal)) +
         parts.text() + "\nWhat runs, hidden or not\n" + work.text();
}

Json simulation_json(const std::vector<SimulatedRank>& ranks) {
  Json all = Json::array();
  for (const SimulatedRank& rank : ranks) {
    const StepTimes& t = rank.times;
    Json work = Json::array();
    for (const Share& s : shares_of(rank))
      work.push_back({{"what", s.what}, {"seconds", s.seconds}, {"count", s.count}});
    all.push_back({{"rank", rank.rank},
                   {"name", rank.name},
                   {"runs", rank.what},
                   {"step_seconds", t.step},
                   {"compute_seconds", t.compute},
                   {"optimizer_seconds", t.optimizer},
                   {"exposed_communication_seconds", t.exposed_communication},
                   {"exposed_copy_seconds", t.exposed_copies},
                   {"bubble_seconds", t.bubble},
                   {"idle_seconds", t.idle},
                   {"speed_of_light_seconds", t.ideal},
                   {"work", std::move(work)}});
  }
  return {{"schema", "shardplan.simulation/1"}, {"ranks", std::move(all)}};
}

}  // namespace shardplan
