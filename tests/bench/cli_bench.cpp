// The built program as a process, from fork to exit. The bar: 20 ms.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

/// Runs the program with its output thrown away; returns its exit code.
int run_process(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{SHARDPLAN_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = -1;
  if (posix_spawn(&child, SHARDPLAN_PROGRAM, &actions, nullptr, argv.data(), environ) == 0)
    waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void process(benchmark::State& state, const std::vector<std::string>& arguments) {
  for (auto _ : state)
    if (run_process(arguments) != 0) state.SkipWithError("the program failed");
}

BENCHMARK_CAPTURE(process, version, {"--version"})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(process, fit, {"fit", "llama-2-7b", "8xH100"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(process, compare, {"compare", "--model", "llama-2-7b", "--cluster", "8xH100"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
