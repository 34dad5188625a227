// A file that people have, read but not yet understood: keys and values, whatever it was written
// in. A shell script is as many documents as it has programs with arguments.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"
#include "json/positions.h"

namespace shardplan::importing {

/// Where the choice of one of Hydra's groups stands whose keys are given too: "engine.@".
inline constexpr const char* kGroupChoice = "@";

struct Document {
  std::string file;  ///< as the user gave it
  /// Of a command: the words before its arguments, "torchrun", "pretrain_gpt.py", "swift sft".
  std::string program;
  Json value;  ///< an object; of a command its arguments, with '_' for '-'
  KeyPositions positions;
  std::vector<std::string> repeated;  ///< keys that appear again: the last one counts
  std::vector<std::string> words;     ///< of a command: what is no argument, such as a file
  /// Of a command: arguments whose values are variables that the script does not set.
  std::set<std::string, std::less<>> unset;
  struct Place {
    std::string file;
    int line = 0;
    std::string key;  ///< as it is written there, where that is not as here
  };
  /// Keys that the command which names this file has put over it, and where they stand.
  std::map<std::string, Place, std::less<>> elsewhere;
  bool is_command() const { return !program.empty(); }
};

/// What `text` holds: JSON, TOML, YAML, a shell script or command lines, or a hostfile, told by
/// their content. Throws InputError where it is none of them.
std::vector<Document> parse_documents(std::string_view text, const std::string& file);

/// The programs with arguments of a shell script.
std::vector<Document> parse_script(std::string_view text, const std::string& file);

/// The same of a file.
std::vector<Document> read_documents(const std::string& path);

/// The path as it can be opened: beside `file`, else in the working directory; "" where there is
/// none.
std::string resolved_path(const std::string& path, const std::string& file);

/// The value at "a.b.c", or nullptr. A key may have points of its own.
const Json* value_below(const Json& object, std::string_view path);

/// The whole number there, where there is one.
std::optional<std::int64_t> integer_at(const Document& d, std::string_view path);

}  // namespace shardplan::importing
