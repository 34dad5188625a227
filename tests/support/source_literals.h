// The string literals of C++ sources, and the function that each is handed to: what tests of words
// compare with data/words.
#pragma once

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan {

struct SourceLiteral {
  std::string file;
  std::string callee;  ///< the name before the bracket that the literal follows; "": none
  std::string text;    ///< adjacent literals in one, escapes undone
};

namespace detail {

/// "tr" of "return tr(".
inline std::string callee_of(std::string_view code) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  while (!code.empty() && blank(code.back())) code.remove_suffix(1);
  if (code.empty() || code.back() != '(') return "";
  code.remove_suffix(1);
  std::size_t start = code.size();
  while (start > 0 && word(code[start - 1])) --start;
  return std::string(code.substr(start));
}

/// Reads a quoted text from just behind its opening quote; `at` ends behind the closing one.
inline std::string quoted(std::string_view source, std::size_t& at, char quote) {
  std::string text;
  while (at < source.size() && source[at] != quote) {
    if (source[at] == '\\') {
      ++at;
      text += source[at] == 'n' ? '\n' : source[at] == 't' ? '\t' : source[at];
    } else {
      text += source[at];
    }
    ++at;
  }
  ++at;
  return text;
}

}  // namespace detail

/// Of one source, which the project's own style keeps simple: no trigraphs, no line splices.
inline std::vector<SourceLiteral> literals_in(const std::string& file, std::string_view source) {
  std::vector<SourceLiteral> all;
  std::string code;       // without literals and comments
  bool adjacent = false;  // nothing but blanks since the last literal
  std::size_t at = 0;
  const auto skip_to = [&](std::string_view end, std::size_t behind) {
    const std::size_t found = source.find(end, at);
    at = found == std::string_view::npos ? source.size() : found + behind;
  };
  while (at < source.size()) {
    const std::string_view rest = source.substr(at);
    const char c = rest.front();
    const bool in_word =
        !code.empty() && std::isalnum(static_cast<unsigned char>(code.back())) != 0;
    if (rest.starts_with("//")) {
      skip_to("\n", 0);
    } else if (rest.starts_with("/*")) {
      skip_to("*/", 2);
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = source.find('(', at);
      const std::string end = ")" + std::string(source.substr(at + 2, open - at - 2)) + "\"";
      const std::size_t close = source.find(end, open);
      all.push_back({file, "", std::string(source.substr(open + 1, close - open - 1))});
      at = close + end.size();
      adjacent = false;
    } else if (c == '"') {
      ++at;
      std::string text = detail::quoted(source, at, '"');
      if (adjacent)
        all.back().text += text;
      else
        all.push_back({file, detail::callee_of(code), std::move(text)});
      adjacent = true;
    } else if (c == '\'' && !in_word) {
      ++at;
      detail::quoted(source, at, '\'');
      adjacent = false;
    } else {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) adjacent = false;
      code += c;
      ++at;
    }
  }
  return all;
}

/// Of every .cpp and .h below the folders, which are named from the project's root.
inline std::vector<SourceLiteral> source_literals(const std::vector<std::string>& folders) {
  std::vector<SourceLiteral> all;
  const std::filesystem::path root(SHARDPLAN_SOURCE_DIR);
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      std::ifstream stream(entry.path());
      const std::string source{std::istreambuf_iterator<char>(stream), {}};
      for (SourceLiteral& l : literals_in(entry.path().string(), source))
        all.push_back(std::move(l));
    }
  return all;
}

}  // namespace shardplan
