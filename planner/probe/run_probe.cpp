#include "probe/run_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "embedded/files.h"

extern char** environ;

namespace shardplan {
namespace {

constexpr const char* kExpected = "the Python that trains: --python PATH";

struct Ended {
  std::string printed;  ///< standard output and standard error
  int status = 0;       ///< waitpid's
};

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw InputError({.message = fmt::format("cannot start a program: {}", strerror(errno))});
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    close_writing();
  }

  int writing() const { return ends_[1]; }
  void close_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string read_all() const {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(ends_[0], part.data(), part.size())) != 0;) {
      if (got < 0 && errno != EINTR) break;
      if (got > 0) all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

Ended run(const std::string& python, const std::string& program) {
  Pipe pipe;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe.writing(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe.writing(), STDERR_FILENO);
  std::array<std::string, 3> words{python, "-c", program};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw InputError({.file = python,
                      .message = fmt::format("cannot be run: {}", strerror(error)),
                      .expected = kExpected});
  pipe.close_writing();
  Ended ended{.printed = pipe.read_all()};
  while (waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  const std::size_t before = text.rfind('\n');
  return before == std::string::npos ? text : text.substr(before + 1);
}

}  // namespace

Json run_probe(const std::string& python) {
  const Ended ended = run(python, std::string(embedded_file("probe/host.py")));
  // What an interpreter or its site says before comes on lines of its own.
  const std::size_t begin = ended.printed.find("{\n");
  const bool done = WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
  const Json json = done && begin != std::string::npos
                        ? Json::parse(ended.printed.substr(begin), nullptr, false)
                        : Json(Json::value_t::discarded);
  if (json.is_discarded())
    throw InputError({.file = python,
                      .message = fmt::format(
                          "did not measure the host: {}",
                          ended.printed.empty() ? "it printed nothing" : last_line(ended.printed)),
                      .expected = kExpected});
  return json;
}

}  // namespace shardplan
