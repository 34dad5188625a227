// Watches over the processes of a run, beside their exchange of tensors.
//
// Each process has a thread that tells the first process twice a second that it lives and what its
// ranks do. The first one decides who is lost: a process whose connection broke, that says why it
// fails, that nothing is heard of, or that others wait for in vain. All are told the same.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/loss.h"
#include "comm/patience.h"
#include "comm/roster.h"
#include "device/errors.h"

namespace shardplan::validator {

class Lookout {
 public:
  /// `star` is of the processes of `roster`. Every process makes one at the same time.
  Lookout(std::unique_ptr<Star> star, Roster roster, Patience patience);
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  const Roster& roster() const { return evidence_.roster; }

  /// What the calling thread's rank begins to do; the thread is named so, for top and ps.
  void at(int rank, Activity activity, std::int64_t step) noexcept;

  /// Who is called, on another thread, when a rank is lost; an empty one ends that.
  void on_loss(std::function<void(const Loss&)> alarm);

  /// Waits a few seconds until it is clear what a failure of the exchange comes from.
  Loss judge(const PeerFailure& failure);
  /// This process fails: the others are told why.
  Loss leave(const std::string& why);

  /// Every process hands in a report: all of them, in order, at the first; nothing elsewhere.
  /// Throws PeerFailure.
  std::vector<Json> gather(const Json& mine);
  /// Returns when the first process has called it: all may end. Throws PeerFailure.
  void release();

 private:
  bool first() const { return evidence_.roster.mine == 0; }
  void watch();
  void look(Instant& beaten);
  void listen_to(std::size_t member);
  void take(std::size_t member, const Json& frame);
  void beat() noexcept;
  void tell(std::size_t member, const Json& frame) noexcept;
  void tell_all(const Json& frame) noexcept;
  void settle(const Loss& loss);

  std::unique_ptr<Star> star_;
  Patience patience_;
  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  Evidence evidence_;
  std::vector<Json> reports_;  ///< null: not there yet
  std::optional<Loss> loss_;
  std::function<void(const Loss&)> alarm_;
  bool over_ = false;
  std::mutex sending_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace shardplan::validator
