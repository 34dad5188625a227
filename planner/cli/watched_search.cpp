#include "cli/watched_search.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>

#include "base/format.h"
#include "cli/terminal.h"
#include "load/model.h"

namespace shardplan::cli {
namespace {

/// SIGINT asks every search that runs to stop; a second one does what it did before the first
/// search began: it ends the program, or goes to whoever called it within the same process.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    const std::lock_guard lock(mutex());
    if (running()++ > 0) return;
    flag() = false;
    struct sigaction stop {};
    stop.sa_handler = [](int) {
      flag() = true;
      sigaction(SIGINT, &former(), nullptr);
    };
    sigaction(SIGINT, &stop, &former());
  }
  ~StopOnInterrupt() {
    const std::lock_guard lock(mutex());
    if (--running() == 0) sigaction(SIGINT, &former(), nullptr);
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

  static std::atomic<bool>& flag() {
    static std::atomic<bool> stop{false};
    return stop;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static int& running() {
    static int searches = 0;
    return searches;
  }
  static struct sigaction& former() {
    static struct sigaction handler {};
    return handler;
  }
};

}  // namespace

SearchResult watched_search(const ModelVariants& models, const SearchSpace& space, const Goal& goal,
                            const Calibration& calibration, unsigned threads) {
  const StopOnInterrupt interrupt;
  ProgressLine line;
  return search(
      models, space, goal, calibration,
      {.threads = threads,
       .stop = &StopOnInterrupt::flag(),
       .progress = [&](const SearchProgress& p) {
         line.show(fmt::format("{} of {} candidates settled, {} on the front",
                               format_count(p.settled), format_count(p.candidates), p.on_front));
       }});
}

ModelVariants variants_of(const Job& job, const Json& asked, const std::string& file,
                          const SearchSpace& space) {
  return {job.model, job.plan, space, [&](const BuildOptions& options) {
            return load_model(asked.at("model"),
                              {file, "model", std::filesystem::path(file).parent_path().string()},
                              options);
          }};
}

SearchAnswer answer_of(const Job& job, const ModelVariants& models, const SearchSpace& space,
                       const Goal& goal, const SearchResult& result,
                       const Calibration& calibration) {
  SearchAnswer answer{job, space, goal, result, {}, calibration};
  if (!result.front.empty())
    answer.others = other_choices(models, space, result.front.front(), calibration);
  return answer;
}

}  // namespace shardplan::cli
