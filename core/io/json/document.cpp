#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/diagnostic.h"

namespace shardplan {
namespace {

/// "line 3, column 7" of the byte at which nlohmann/json stopped (1-based).
std::string position_of(std::string_view text, std::size_t byte) {
  const std::size_t end = std::min(text.size(), byte > 0 ? byte - 1 : 0);
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < end; ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

/// The reason inside nlohmann's message, without its own prefix and position.
std::string reason_of(const std::string& what) {
  const auto start = what.find("syntax error");
  return start == std::string::npos ? what : what.substr(start);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  if (text.size() > kLargestDocument) {
    throw InputError({.file = file,
                      .message = fmt::format("the document has {} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", kLargestDocument)});
  }
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepestNesting) {
      throw InputError({.file = file,
                        .message = "values are nested too deeply",
                        .expected = fmt::format("at most {} levels", kDeepestNesting)});
    }
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw InputError({.file = file, .key = key, .message = "this key appears twice"});
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& e) {
    throw InputError({.file = file,
                      .message = fmt::format("{}: not valid JSON: {}", position_of(text, e.byte),
                                             reason_of(e.what()))});
  } catch (const Json::exception& e) {  // a number out of range
    throw InputError({.file = file, .message = fmt::format("not valid JSON: {}", e.what())});
  }
}

std::string read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError({.file = path, .message = "this is a directory", .expected = "a file"});
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError({.file = path, .message = "cannot open the file"});
  // A pipe or a device does not say how long it is, and may never end.
  std::string text;
  std::array<char, 1 << 16> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestDocument)
      throw InputError({.file = path,
                        .message = "the file is too large for a configuration",
                        .expected = fmt::format("at most {} bytes", kLargestDocument)});
  }
  return text;
}

Json read_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace shardplan
