#include "json/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <vector>

#include "base/diagnostic.h"
#include "base/nearest.h"
#include "json/given_texts.h"
#include "json/syntax_reason.h"
#include "json/text_position.h"
#include "json/utf8.h"

namespace shardplan {
namespace {

/// Whether the sign at `byte`, counted from 1, closes an object or a list right behind a comma.
bool ends_with_comma(std::string_view text, std::size_t byte) {
  if (byte == 0 || byte > text.size() || (text[byte - 1] != '}' && text[byte - 1] != ']'))
    return false;
  const std::size_t before = text.substr(0, byte - 1).find_last_not_of(" \t\r\n");
  return before != text.npos && text[before] == ',';
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file, JsonComments comments,
                RepeatedKeys repeated) {
  if (text.size() > kLargestDocument) {
    throw InputError({.file = file,
                      .message = fmt::format("the document has {} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", kLargestDocument),
                      .rule = "json.too-large"_rule});
  }
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepestNesting) {
      throw InputError({.file = file,
                        .message = "values are nested too deeply",
                        .expected = say("at most {} levels", kDeepestNesting),
                        .rule = "json.too-deep"_rule});
    }
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && repeated == RepeatedKeys::refused)
        throw InputError({.file = file,
                          .key = key,
                          .message = "this key appears twice",
                          .rule = "json.duplicate-key"_rule});
    }
    return true;
  };
  if (text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == text.npos)
    throw InputError({.file = file,
                      .message = "is empty",
                      .expected = "JSON",
                      .position = {1, 1},
                      .rule = "json.syntax"_rule});
  require_utf8(text, file);
  try {
    return Json::parse(text.begin(), text.end(), watch, true, comments == JsonComments::skipped);
  } catch (const Json::parse_error& e) {
    throw InputError(
        {.file = file,
         .message = say("not valid JSON: {}", ends_with_comma(text, e.byte)
                                                  ? Said("a comma behind the last value")
                                                  : json_reason(e.what())),
         .position = position_of(text, e.byte),
         .rule = "json.syntax"_rule});
  } catch (const Json::exception& e) {  // a number out of range
    throw InputError({.file = file,
                      .message = say("not valid JSON: {}", json_reason(e.what())),
                      .rule = "json.syntax"_rule});
  }
}

namespace {

/// Whole, or the part that is enough to see that it is too large.
std::string read_stream(std::istream& in, std::size_t largest) {
  std::string text;
  std::array<char, 1 << 16> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > largest) break;
  }
  return text;
}

std::string read_opened(const std::string& path, std::size_t largest) {
  std::ifstream in(path, std::ios::binary);
  if (in) return read_stream(in, largest);
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  throw InputError({.file = path,
                    .message = there ? "cannot open the file" : "there is no such file",
                    .nearest = there ? "" : near_file(path)});
}

/// Standard input and pipes (`<(command)`) can be read only once, and several questions are asked
/// of a file: what came is kept. They do not say how long they are, and may never end.
const std::string& read_once(const std::string& path, std::size_t largest) {
  static std::mutex guard;
  static std::map<std::string, std::string> texts;
  const std::lock_guard lock(guard);
  const auto found = texts.find(path);
  if (found != texts.end()) return found->second;
  return texts[path] = path == kStandardInput ? read_stream(std::cin, kLargestDocument)
                                              : read_opened(path, largest);
}

}  // namespace

std::string near_file(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::size_t kMostNames = 10'000;
  const fs::path asked(path), folder = asked.parent_path();
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end;
       !error && it != end && names.size() < kMostNames; it.increment(error))
    if (it->is_regular_file(error)) names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());  // a folder has no order of its own
  const std::string name = nearest(asked.filename().string(), std::span<const std::string>(names));
  return name.empty() ? name : (folder / name).string();
}

std::string read_text_file(const std::string& path, std::size_t largest) {
  const auto small_enough = [&](std::string text) {
    if (text.size() > largest)
      throw InputError({.file = path,
                        .message = "the file is too large for a configuration",
                        .expected = fmt::format("at most {} bytes", largest),
                        .rule = "json.too-large"_rule});
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))  // as PowerShell's > writes
      throw InputError({.file = path,
                        .message = "is text in UTF-16",
                        .expected = "UTF-8",
                        .rule = "json.syntax"_rule});
    return text;
  };
  if (const std::string* text = given_text(path)) return small_enough(*text);
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError({.file = path, .message = "this is a directory", .expected = "a file"});
  const bool once = path == kStandardInput || (std::filesystem::exists(path, error) &&
                                               !std::filesystem::is_regular_file(path, error));
  return small_enough(once ? read_once(path, largest) : read_opened(path, largest));
}

std::string read_text_file(const std::string& path) {
  return read_text_file(path, kLargestDocument);
}

void overlay(Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) {
    base = over;
    return;
  }
  for (const auto& [key, value] : over.items()) overlay(base[key], value);
}

Json read_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace shardplan
