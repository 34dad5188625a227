#include "cli/output.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/diagnostic.h"

namespace shardplan::cli {

void Output::write(const std::string& answer) const {
  if (file.empty()) {
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    return;
  }
  const std::filesystem::path path(file);
  std::filesystem::path beside = path;
  beside += ".part";
  std::ofstream out(beside, std::ios::binary);
  out << answer;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, path, error);
  if (!out || error) {
    std::filesystem::remove(beside, error);
    throw InputError({.file = file, .message = "cannot write the file"});
  }
}

}  // namespace shardplan::cli
