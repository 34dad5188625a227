#include "cli/output.h"

#include <filesystem>
#include <fstream>

#include "base/diagnostic.h"
#include "cli/console.h"

namespace shardplan::cli {

void Output::write(const std::string& answer) const {
  if (file.empty()) {
    print_answer(answer);
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
