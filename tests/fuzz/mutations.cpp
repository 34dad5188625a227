// The front ends under mutated inputs, the same ones in every run: what libFuzzer's targets do
// where there is no clang, and what ctest runs (Fuzz.*). docs/how-to/fuzzing.md has the commands.
//
//     fuzz_mutations TARGET CORPUS_FOLDER [--runs N | --seconds N] [--seed N]
//
// Prints how many inputs ran and the slowest. An input that crashes, hangs for ten seconds or lets
// another exception out is written to found-TARGET in the current folder; exit code 1.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "front_ends.h"
#include "import_front_end.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Target {
  std::string_view name;
  void (*run)(std::string_view);
};
constexpr std::array kTargets{
    Target{"job", shardplan::run_job}, Target{"model_config", shardplan::run_model_config},
    Target{"ds_config", shardplan::run_ds_config}, Target{"cluster", shardplan::run_cluster},
    Target{"import", shardplan::run_import}};

// What a signal handler may read.
std::string_view running;  // NOLINT: the input that runs now
std::string found_file;    // NOLINT

void keep_input() {
  const int file = ::open(found_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const auto written = ::write(file, running.data(), running.size());
  ::close(file);
}

extern "C" void on_signal(int) {
  keep_input();
  ::_exit(1);
}

class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::uint64_t seed)
      : corpus_(std::move(corpus)), random_(seed) {}

  std::string next() {
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    constexpr std::size_t kLongest = 6000;
    if (text.size() > kLongest) text.resize(kLongest);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  std::string part_of(const std::string& text) {
    const std::size_t start = below(text.size());
    return text.substr(start, 1 + below(64));
  }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        return;
      case 1:
        text.erase(at, 1 + below(32));
        return;
      case 2:
        text.insert(at, part_of(text));
        return;
      case 3:
        text.insert(at, part_of(corpus_[below(corpus_.size())]));
        return;
      default:
        replace_value(text, at);
    }
  }

  /// Another value in the place of a word or a number near `at`.
  void replace_value(std::string& text, std::size_t at) {
    constexpr std::array<std::string_view, 22> kValues{
        "0",    "-1",  "1",    "2",    "7",      "100000", "9223372036854775807",
        "1e30", "0.5", "1e-9", "null", "true",   "false",  "\"auto\"",
        "\"\"", "[]",  "{}",   "[1]",  "\"8k\"", "NaN",    "18446744073709551616",
        "-0.0"};
    constexpr std::string_view kEnds = " \t\n,:]}";
    const std::size_t start = text.find_first_of(":[=", at);
    if (start == std::string::npos) return;
    const std::size_t first = text.find_first_not_of(" \t", start + 1);
    if (first == std::string::npos) return;
    const std::size_t last = std::min(text.find_first_of(kEnds, first), text.size());
    text.replace(first, last - first, kValues[below(kValues.size())]);
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());  // the same order everywhere
  std::vector<std::string> texts;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

struct Limits {
  std::uint64_t runs = 1000, seed = 1;
  double seconds = 0;  ///< instead of runs
};

/// What of the inputs ran how long.
struct Outcome {
  std::uint64_t runs = 0, slow = 0;
  double slowest = 0;
  bool failed = false;
};

/// Runs one input; false where an exception gets out.
bool survives(const Target& target, const std::string& text) {
  running = text;
  ::alarm(10);
  try {
    target.run(text);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", target.name, error.what());
    keep_input();
    return false;
  }
  ::alarm(0);
  return true;
}

Outcome run_all(const Target& target, Mutator mutator, const Limits& limits) {
  constexpr double kSlow = 0.1;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Outcome outcome;
  const auto start = Clock::now();
  const auto ended = [&] {
    return limits.seconds > 0 ? seconds_since(start) >= limits.seconds
                              : outcome.runs >= limits.runs;
  };
  while (!ended()) {
    const std::string text = mutator.next();
    const auto begin = Clock::now();
    if (!survives(target, text)) {
      outcome.failed = true;
      return outcome;
    }
    const double took = seconds_since(begin);
    ++outcome.runs;
    if (took > kSlow) ++outcome.slow;
    if (took > outcome.slowest) {
      outcome.slowest = took;
      if (took > kSlow) std::ofstream("slow-" + std::string(target.name)) << text;
    }
  }
  return outcome;
}

void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)  // which reserves terabytes of addresses
  const rlimit limit{4ULL << 30, 4ULL << 30};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto* target = std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& t) {
    return !words.empty() && t.name == words.front();
  });
  if (target == kTargets.end() || words.size() % 2 != 0) {
    fmt::print(stderr, "fuzz_mutations TARGET CORPUS_FOLDER [--runs N | --seconds N] [--seed N]\n");
    return 2;
  }
  Limits limits;
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    if (words[i] == "--runs") limits.runs = std::stoull(words[i + 1]);
    if (words[i] == "--seconds") limits.seconds = std::stod(words[i + 1]);
    if (words[i] == "--seed") limits.seed = std::stoull(words[i + 1]);
  }
  found_file = fmt::format("found-{}", target->name);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGALRM, SIGBUS})
    std::signal(signal, on_signal);
  limit_memory();
  std::vector<std::string> corpus = read_corpus(words[1]);
  if (corpus.empty()) return 2;
  const Outcome outcome = run_all(*target, Mutator(std::move(corpus), limits.seed), limits);
  fmt::print("{}: {} inputs, the slowest {:.0f} ms, {} slower than 100 ms\n", target->name,
             outcome.runs, outcome.slowest * 1e3, outcome.slow);
  return outcome.failed ? 1 : 0;
}
