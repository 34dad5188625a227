#include "comm/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace shardplan::validator {
namespace {

using namespace std::chrono_literals;

/// The processes of a node end at about the same time: all of them are to be named.
constexpr auto kTogether = 300ms;
/// Two beats: processes that fell silent together were last heard of that far apart.
constexpr auto kBeats = 1s;
/// A rank that others wait for in vain may itself only wait for another.
constexpr auto kSecondThought = 2s;

struct ActivityName {
  std::string_view name, word;
};
constexpr std::array<ActivityName, 8> kActivities{{{"starting", "start"},
                                                   {"loading weights", "weights"},
                                                   {"forward", "forward"},
                                                   {"backward", "backward"},
                                                   {"optimizer step", "step"},
                                                   {"saving a checkpoint", "save"},
                                                   {"reporting", "report"},
                                                   {"saving the record", "record"}}};

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string listed(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", text);
}

}  // namespace

std::string_view name_of(Activity activity) {
  return kActivities[static_cast<std::size_t>(activity)].name;
}
std::string_view word_of(Activity activity) {
  return kActivities[static_cast<std::size_t>(activity)].word;
}

bool Evidence::watched(std::size_t member) const {
  return roster.mine == 0 ? member != 0 : member == 0;
}

bool Evidence::silent(std::size_t member, Instant at) const {
  return watched(member) && at - members[member].heard > silence;
}

/// When enough is known to say who is to blame.
std::optional<Instant> Evidence::due(Instant now) const {
  std::optional<Instant> due;
  const auto by = [&](Instant at) { due = due ? std::min(*due, at) : at; };
  if (suspected) by(*suspected + kSecondThought);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m].left) by(*members[m].left);
    if (members[m].ended) by(*members[m].ended + kTogether);
    if (silent(m, now)) by(members[m].heard + silence + kBeats);
  }
  return due;
}

/// Those that others wait for and that do not wait themselves.
std::vector<std::size_t> Evidence::to_blame() const {
  std::vector<std::size_t> named, quiet;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const auto waits_for_it = [&](const Watched& other) {
      return other.suspects && other.suspect >= 0 &&
             roster.member_of(other.suspect) == static_cast<int>(m);
    };
    const Watched& it = members[m];
    const bool by_itself = it.suspects && waits_for_it(it);
    if (it.suspects && !by_itself) continue;
    quiet.push_back(m);
    if (std::any_of(members.begin(), members.end(), waits_for_it)) named.push_back(m);
  }
  return named.empty() ? quiet : named;
}

std::optional<Loss> Evidence::judge(Instant now) const {
  const auto when = due(now);
  if (!when || now < *when) return std::nullopt;
  std::vector<std::size_t> gone, mute;
  std::optional<std::size_t> failed;
  std::optional<Instant> first_end;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Watched& it = members[m];
    if (it.left && (!failed || *it.left < *members[*failed].left)) failed = m;
    if (it.left) continue;  // it ended because of that
    if (it.ended) gone.push_back(m);
    if (it.ended && (!first_end || *it.ended < *first_end)) first_end = it.ended;
    if (!it.ended && silent(m, now + kBeats)) mute.push_back(m);
  }
  if (failed && (!first_end || *members[*failed].left < *first_end))
    return loss_of({*failed}, members[*failed].why, now);
  if (!gone.empty())
    return loss_of(gone, gone.size() == 1 ? "its process ended" : "their processes ended", now);
  if (!mute.empty())
    return loss_of(mute, fmt::format("nothing was heard for {:.3g} s", seconds_of(silence)), now);
  return loss_of(to_blame(), fmt::format("others waited for {:.3g} s", seconds_of(silence)), now);
}

Loss Evidence::blame(int rank, const std::string& how) const {
  std::vector<std::size_t> blamed;
  if (rank >= 0) blamed.push_back(static_cast<std::size_t>(roster.member_of(rank)));
  return loss_of(blamed, how, std::chrono::steady_clock::now());
}

Loss Evidence::loss_of(const std::vector<std::size_t>& blamed, const std::string& how,
                       Instant now) const {
  const auto place = [&](int rank) {
    const Whereabouts& at = ranks[static_cast<std::size_t>(rank)];
    return Json{{"rank", rank},
                {"node", roster.node_of(rank)},
                {"step", at.step},
                {"phase", name_of(at.activity)}};
  };
  Json lost = Json::array(), everyone = Json::array();
  std::string who;
  std::size_t count = 0;
  for (const std::size_t m : blamed) {
    // Ranks of one node are named together.
    if (m != blamed.front() && roster.members[m].node == roster.members[m - 1].node) continue;
    std::vector<int> here;
    for (const std::size_t other : blamed)
      for (int r = 0; r < roster.members[other].ranks; ++r)
        if (roster.members[other].node == roster.members[m].node)
          here.push_back(roster.members[other].first_rank + r);
    count += here.size();
    for (const int rank : here) lost.push_back(place(rank));
    who += fmt::format("{}{} on {}", who.empty() ? "" : ", ", listed(here), roster.members[m].node);
  }
  for (int rank = 0; rank < roster.world(); ++rank) {
    Json row = place(rank);
    const std::size_t m = static_cast<std::size_t>(roster.member_of(rank));
    if (watched(m)) row["heard_seconds_ago"] = seconds_of(now - members[m].heard);
    everyone.push_back(row);
  }
  Loss loss;
  if (lost.empty()) {
    loss.text = "no rank goes on, and none can be told to have begun it: " + how;
  } else {
    const Json& first = lost.front();
    loss.text = fmt::format("{} {} lost: {} ({}{})", who, count == 1 ? "is" : "are", how,
                            first.at("step").get<std::int64_t>() > 0
                                ? fmt::format("step {}, ", first.at("step").get<std::int64_t>())
                                : "",
                            first.at("phase").get<std::string>());
  }
  loss.report = {{"schema", "shardplan.failure/1"},
                 {"message", loss.text},
                 {"how", how},
                 {"lost", lost},
                 {"ranks", everyone}};
  return loss;
}

}  // namespace shardplan::validator
