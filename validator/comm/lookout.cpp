#include "comm/lookout.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace shardplan::validator {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kBeat = 500ms;
constexpr auto kLook = 100ms;
/// Longer than the first process takes to make up its mind.
constexpr auto kVerdict = 4s;

void name_thread(int rank, Activity activity) {
  constexpr std::size_t kLongestName = 15;
  const std::string name = fmt::format("r{} {}", rank, word_of(activity)).substr(0, kLongestName);
  pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace

Lookout::Lookout(std::unique_ptr<Star> star, Roster roster, Patience patience)
    : star_(std::move(star)), patience_(patience), reports_(roster.members.size()) {
  evidence_.members.assign(roster.members.size(), {.heard = Clock::now()});
  evidence_.ranks.resize(static_cast<std::size_t>(roster.world()));
  evidence_.silence = patience.silence;
  evidence_.roster = std::move(roster);
  thread_ = std::thread([this] { watch(); });
}

Lookout::~Lookout() {
  stopping_ = true;
  thread_.join();
}

void Lookout::at(int rank, Activity activity, std::int64_t step) noexcept {
  {
    const std::lock_guard lock(mutex_);
    Whereabouts& mine = evidence_.ranks[static_cast<std::size_t>(rank)];
    // Micro-batches go forward and backward many times a step: the first time is told at once.
    const bool told = mine.step == step && activity <= mine.activity;
    mine = {activity, step};
    if (told) return name_thread(rank, activity);
  }
  // The first process would have to tell all others: within a step its next beat does.
  const bool in_step = activity >= Activity::forward && activity <= Activity::step;
  if (!first() || !in_step) beat();
  name_thread(rank, activity);
}

void Lookout::on_loss(std::function<void(const Loss&)> alarm) {
  std::unique_lock lock(mutex_);
  alarm_ = std::move(alarm);
  if (!alarm_ || !loss_) return;
  const auto call = alarm_;
  const Loss loss = *loss_;
  lock.unlock();
  call(loss);
}

Loss Lookout::judge(const PeerFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    Watched& me = evidence_.members[static_cast<std::size_t>(evidence_.roster.mine)];
    me.suspects = true;
    me.suspect = failure.rank;
    // Elsewhere too little is known to say who others wait for.
    if (first() && !evidence_.suspected) evidence_.suspected = Clock::now();
  }
  if (!first()) tell(0, {{"kind", "suspect"}, {"rank", failure.rank}});
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kVerdict, [&] { return loss_.has_value(); });
  return loss_ ? *loss_ : evidence_.blame(failure.rank, failure.what());
}

Loss Lookout::leave(const std::string& why) {
  std::optional<Loss> loss;
  {
    const std::lock_guard lock(mutex_);
    Watched& me = evidence_.members[static_cast<std::size_t>(evidence_.roster.mine)];
    me.left = Clock::now();
    me.why = why;
    loss = evidence_.judge(*me.left);
  }
  if (first())
    settle(*loss);
  else
    tell(0, {{"kind", "left"}, {"why", why}});
  return *loss;
}

std::vector<Json> Lookout::gather(const Json& mine) {
  if (!first()) {
    tell(0, {{"kind", "report"}, {"report", mine}});
    return {};
  }
  std::unique_lock lock(mutex_);
  reports_[0] = mine;
  const auto missing = [&] { return std::find(reports_.begin(), reports_.end(), Json()); };
  const bool came = changed_.wait_for(lock, patience_.silence,
                                      [&] { return missing() == reports_.end() || loss_; });
  if (loss_) throw PeerFailure(loss_->text);
  if (came) return reports_;
  const auto member = static_cast<std::size_t>(missing() - reports_.begin());
  const int rank = evidence_.roster.members[member].first_rank;
  throw PeerFailure(fmt::format("rank {} did not hand in its report", rank), rank);
}

void Lookout::release() {
  if (first()) {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    return tell_all({{"kind", "end"}});
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || loss_; });
  if (!over_) throw PeerFailure(loss_->text);
}

void Lookout::watch() {
  pthread_setname_np(pthread_self(), "lookout");
  Instant beaten{};
  while (!stopping_) look(beaten);
}

void Lookout::look(Instant& beaten) {
  std::vector<pollfd> sockets;
  std::vector<std::size_t> whose;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t count = first() ? evidence_.members.size() : 1;
    for (std::size_t m = first() ? 1 : 0; m < count; ++m) {
      if (evidence_.members[m].ended) continue;
      sockets.push_back({.fd = star_->to(static_cast<int>(m)).descriptor(), .events = POLLIN});
      whose.push_back(m);
    }
  }
  poll(sockets.data(), sockets.size(), static_cast<int>(kLook.count()));
  for (std::size_t i = 0; i < sockets.size(); ++i)
    if (sockets[i].revents != 0) listen_to(whose[i]);
  if (Clock::now() - beaten >= kBeat) {
    beat();
    beaten = Clock::now();
  }
  std::optional<Loss> loss;
  {
    const std::lock_guard lock(mutex_);
    if (over_ || loss_) return;
    loss = evidence_.judge(Clock::now());
  }
  if (loss) settle(*loss);
}

void Lookout::listen_to(std::size_t member) {
  try {
    take(member, receive_frame(star_->to(static_cast<int>(member))));
  } catch (const PeerFailure&) {
    const std::lock_guard lock(mutex_);
    evidence_.members[member].ended = Clock::now();
  }
}

void Lookout::take(std::size_t member, const Json& frame) {
  const std::string kind = frame.at("kind");
  if (kind == "lost") return settle({frame.at("text"), frame.at("report")});
  const std::lock_guard lock(mutex_);
  Watched& it = evidence_.members[member];
  it.heard = Clock::now();
  if (kind == "beat")
    for (const Json& row : frame.at("ranks"))
      evidence_.ranks[row.at(0).get<std::size_t>()] = {static_cast<Activity>(row.at(1).get<int>()),
                                                       row.at(2).get<std::int64_t>()};
  if (kind == "suspect") {
    it.suspects = true;
    it.suspect = frame.at("rank");
    if (!evidence_.suspected) evidence_.suspected = it.heard;
  }
  if (kind == "left") {
    it.left = it.heard;
    it.why = frame.at("why");
  }
  if (kind == "report") reports_[member] = frame.at("report");
  if (kind == "end") over_ = true;
  changed_.notify_all();
}

void Lookout::beat() noexcept {
  Json ranks = Json::array();
  {
    const std::lock_guard lock(mutex_);
    const Roster& roster = evidence_.roster;
    const Member& me = roster.members[static_cast<std::size_t>(roster.mine)];
    for (int r = me.first_rank; r < me.first_rank + me.ranks; ++r) {
      const Whereabouts& at = evidence_.ranks[static_cast<std::size_t>(r)];
      ranks.push_back({r, static_cast<int>(at.activity), at.step});
    }
  }
  const Json frame{{"kind", "beat"}, {"ranks", ranks}};
  first() ? tell_all(frame) : tell(0, frame);
}

/// Who cannot be told is found out by listening.
void Lookout::tell(std::size_t member, const Json& frame) noexcept {
  try {
    const std::lock_guard lock(sending_);
    send_frame(star_->to(static_cast<int>(member)), frame);
  } catch (const PeerFailure&) {
  }
}

void Lookout::tell_all(const Json& frame) noexcept {
  for (std::size_t m = 1; m < evidence_.members.size(); ++m) tell(m, frame);
}

void Lookout::settle(const Loss& loss) {
  std::function<void(const Loss&)> alarm;
  {
    const std::lock_guard lock(mutex_);
    if (over_ || loss_) return;
    loss_ = loss;
    alarm = alarm_;
    changed_.notify_all();
  }
  if (first()) tell_all({{"kind", "lost"}, {"text", loss.text}, {"report", loss.report}});
  if (alarm) alarm(loss);
}

}  // namespace shardplan::validator
