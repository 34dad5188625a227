// Several processes of shardplan-validate, as a launcher starts them, and what can happen to them.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/subprocess.h"

namespace shardplan::validator {

/// A port that nobody listens on.
inline int free_port() {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  socklen_t length = sizeof here;
  bind(s, reinterpret_cast<sockaddr*>(&here), length);
  getsockname(s, reinterpret_cast<sockaddr*>(&here), &length);
  close(s);
  return ntohs(here.sin_port);
}

/// What is started ends with the object, whatever became of it.
class Crew {
 public:
  explicit Crew(int ranks) : pids_(static_cast<std::size_t>(ranks), 0), codes_(pids_.size()) {}
  ~Crew() {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, SIGKILL);
    for (const pid_t pid : pids_)
      if (pid > 0) waitpid(pid, nullptr, 0);
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int ranks() const { return static_cast<int>(pids_.size()); }
  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  std::string out(int rank) const { return text_of(log(rank, "out")); }
  std::string err(int rank) const { return text_of(log(rank, "err")); }
  std::string path(const std::string& name) const { return folder_.path(name); }

  /// `environment`: assignments beside RANK, WORLD_SIZE and MASTER_PORT; those win.
  void start(int rank, const std::vector<std::string>& arguments,
             std::vector<std::string> environment = {}, const std::string& directory = ".") {
    environment.insert(environment.end(),
                       {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks()),
                        "MASTER_PORT=" + std::to_string(port_)});
    const std::string out = log(rank, "out"), err = log(rank, "err");
    std::vector<std::string> words{SHARDPLAN_VALIDATE};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      for (std::string& assignment : environment) putenv(assignment.data());
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      if (chdir(directory.c_str()) != 0) _exit(127);
      execv(argv[0], argv.data());
      _exit(127);
    }
    pids_[static_cast<std::size_t>(rank)] = pid;
  }
  void start_all(const std::vector<std::string>& arguments) {
    for (int rank = 0; rank < ranks(); ++rank) start(rank, arguments);
  }

  /// Stops the rank while its own thread is named "rN PHASE": it is there when this returns.
  bool stop_in(int rank, const std::string& phase, std::chrono::seconds longest) const {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (std::chrono::steady_clock::now() < end) {
      if (!is_in(rank, phase)) continue;
      kill(pid(rank), SIGSTOP);
      while (state(rank) != 'T' && state(rank) != 'Z') std::this_thread::yield();
      if (is_in(rank, phase)) return true;
      kill(pid(rank), SIGCONT);
    }
    return false;
  }

  /// Exit codes once all have ended, 128 + signal of those that were killed; -1: not yet.
  std::vector<int> wait(std::chrono::seconds longest) {
    const auto end = std::chrono::steady_clock::now() + longest;
    const auto all = [&] {
      bool ended = true;
      for (int rank = 0; rank < ranks(); ++rank) ended = reap(rank) && ended;
      return ended;
    };
    while (!all() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::vector<int> codes;
    for (const auto& code : codes_) codes.push_back(code.value_or(-1));
    return codes;
  }

  int port() const { return port_; }
  /// Connections at the common port that the rank's own process has accepted. Other processes may
  /// use the same number for an end of their own, and a socket can be listed twice while the list
  /// changes: what the process holds is counted, each socket once.
  std::size_t connections(int rank) const {
    std::set<std::string> held, accepted;
    const std::string process = "/proc/" + std::to_string(pid(rank));
    std::error_code gone;
    for (const auto& file : std::filesystem::directory_iterator(process + "/fd", gone))
      held.insert(std::filesystem::read_symlink(file, gone).string());
    std::istringstream lines(text_of(process + "/net/tcp"));
    constexpr unsigned kEstablished = 1;
    unsigned port = 0, state = 0;
    char inode[24];
    for (std::string line; std::getline(lines, line);)
      if (std::sscanf(line.c_str(), "%*s %*[^:]:%x %*s %x %*s %*s %*s %*s %*s %23s", &port, &state,
                      inode) == 3 &&
          port == static_cast<unsigned>(port_) && state == kEstablished &&
          held.contains("socket:[" + std::string(inode) + "]"))
        accepted.insert(inode);
    return accepted.size();
  }

 private:
  std::string log(int rank, const char* kind) const {
    return folder_.path(std::to_string(rank) + kind);
  }
  char state(int rank) const {
    const std::string stat = text_of("/proc/" + std::to_string(pid(rank)) + "/stat");
    const std::size_t name = stat.rfind(") ");
    return name == std::string::npos ? 'Z' : stat[name + 2];
  }
  bool is_in(int rank, const std::string& phase) const {
    const std::string name = "r" + std::to_string(rank) + " " + phase + "\n";
    std::error_code gone;
    const std::string tasks = "/proc/" + std::to_string(pid(rank)) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone))
      if (text_of(task.path() / "comm") == name) return true;
    return false;
  }
  bool reap(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (codes_[at] || pids_[at] == 0) return true;
    int status = 0;
    if (waitpid(pids_[at], &status, WNOHANG) != pids_[at]) return false;
    codes_[at] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pids_[at] = 0;
    return true;
  }

  TemporaryFolder folder_;
  int port_ = free_port();
  std::vector<pid_t> pids_;
  std::vector<std::optional<int>> codes_;
};

}  // namespace shardplan::validator
