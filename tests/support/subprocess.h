// Runs a program as a child process, as a shell would.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace shardplan {

/// A folder of its own that disappears with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "shardplan-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Finished {
  int exit_code = -1;
  std::string out, err;
};

/// `environment`: assignments put before the program, "LC_ALL=C"; without any the locale is one of
/// UTF-8, wherever the tests run. `redirections`: of the shell,
/// after those that catch its output: ">/dev/full".
inline Finished run_program(const std::string& program, const std::vector<std::string>& arguments,
                            const std::string& environment = "",
                            const std::string& redirections = "") {
  const TemporaryFolder folder;
  std::string command =
      (environment.empty() ? "LC_ALL=C.UTF-8" : environment) + " '" + program + "'";
  for (const std::string& a : arguments) command += " '" + a + "'";
  command += " >" + folder.path("out") + " 2>" + folder.path("err") + " </dev/null " + redirections;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder.path("out")),
          text_of(folder.path("err"))};
}

}  // namespace shardplan
