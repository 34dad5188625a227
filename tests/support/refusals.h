// What sources refuse: the texts that are handed to a refusal, as a person reads them. A text is
// put together as the source does it: of a literal, of literals and values with + between, of what
// fmt::format() makes; either side of ?: counts. For tests of words.
#pragma once

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/source_literals.h"

namespace shardplan {

struct Refusal {
  static constexpr char kValue = '\x01';  ///< stands in `text` for a value

  std::string file;
  std::string text;
  bool said = false;  ///< made by say(), whose pattern is the id of its words
};

namespace detail {

struct SourceToken {
  enum class Kind { text, name, sign } kind;
  std::string words;
  bool is(std::string_view sign) const { return kind == Kind::sign && words == sign; }
};
using SourceTokens = std::span<const SourceToken>;

inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Reads what begins with a quote, or behind R; `at` ends behind it.
inline std::string literal(std::string_view source, std::size_t& at) {
  if (source[at] != 'R') return quoted(source, ++at, '"');
  const std::size_t open = source.find('(', at);
  const std::string end = ")" + std::string(source.substr(at + 2, open - at - 2)) + "\"";
  const std::size_t close = source.find(end, open);
  at = close + end.size();
  return std::string(source.substr(open + 1, close - open - 1));
}

inline std::vector<SourceToken> source_tokens(std::string_view source) {
  using Kind = SourceToken::Kind;
  std::vector<SourceToken> all;
  for (std::size_t at = 0; at < source.size();) {
    const std::string_view rest = source.substr(at);
    if (std::isspace(static_cast<unsigned char>(rest.front())) != 0) {
      ++at;
    } else if (rest.starts_with("//")) {
      at = std::min(source.find('\n', at), source.size());
    } else if (rest.starts_with("R\"") || rest.front() == '"') {
      std::string words = literal(source, at);
      if (!all.empty() && all.back().kind == Kind::text)
        all.back().words += words;
      else
        all.push_back({Kind::text, std::move(words)});
    } else if (rest.front() == '\'') {
      quoted(source, ++at, '\'');
      all.push_back({Kind::name, "character"});
    } else if (is_word(rest.front())) {
      const bool number = std::isdigit(static_cast<unsigned char>(rest.front())) != 0;
      std::size_t end = 1;  // 1'000 and 0.5 are one word
      while (end < rest.size() &&
             (is_word(rest[end]) || (number && (rest[end] == '\'' || rest[end] == '.'))))
        ++end;
      all.push_back({Kind::name, std::string(rest.substr(0, end))});
      at += end;
    } else {
      static const std::set<std::string_view> kPairs{
          "::", "->", "==", "!=", "<=", ">=", "+=", "-=", "&&", "||", "<<", ">>", "++"};
      const std::size_t size = kPairs.contains(rest.substr(0, 2)) ? 2 : 1;
      all.push_back({Kind::sign, std::string(rest.substr(0, size))});
      at += size;
    }
  }
  return all;
}

inline int depth_of(const SourceToken& token) {
  if (token.is("(") || token.is("[") || token.is("{")) return 1;
  return token.is(")") || token.is("]") || token.is("}") ? -1 : 0;
}

/// The place of the bracket that closes the one at `open`, or the end.
inline std::size_t closing(SourceTokens tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i)
    if ((depth += depth_of(tokens[i])) == 0) return i;
  return tokens.size();
}

/// The first `sign` outside of brackets, or the end of what is in the same brackets.
inline std::size_t outside(SourceTokens tokens, std::string_view sign) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    depth += depth_of(tokens[i]);
    if (depth < 0 || (depth == 0 && tokens[i].is(sign))) return i;
  }
  return tokens.size();
}

inline std::vector<SourceTokens> split(SourceTokens tokens, std::string_view sign) {
  std::vector<SourceTokens> parts;
  for (;;) {
    const std::size_t end = outside(tokens, sign);
    parts.push_back(tokens.first(end));
    if (end == tokens.size()) return parts;
    tokens = tokens.subspan(end + 1);
  }
}

/// A pattern of fmt: its fields are values, doubled braces single ones.
inline std::string formatted(std::string_view pattern) {
  std::string text;
  while (!pattern.empty()) {
    const bool brace = pattern.front() == '{' || pattern.front() == '}';
    const bool doubled = brace && pattern.size() > 1 && pattern[1] == pattern.front();
    const bool field = brace && !doubled;
    text += field ? Refusal::kValue : pattern.front();
    pattern.remove_prefix(field ? pattern.find('}') + 1 : doubled ? 2 : 1);
  }
  return text;
}

class RefusalReader {
 public:
  RefusalReader(std::string file, std::string_view source)
      : file_(std::move(file)), tokens_(source_tokens(source)) {}

  std::vector<Refusal> read() {
    const SourceTokens all(tokens_);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      if (all[i].kind != SourceToken::Kind::name) continue;
      if (!refuses(all[i].words, all[i + 1])) continue;
      named_.clear();
      add_arguments(all.subspan(i + 2, closing(all, i + 1) - i - 2));
    }
    return std::move(found_);
  }

 private:
  struct Text {
    std::string words;
    bool said = false;
  };
  using Texts = std::vector<Text>;

  static bool refuses(std::string_view callee, const SourceToken& next) {
    if (callee == "DivisionProblem" && next.is("{")) return true;
    static const std::set<std::string_view> kNames{
        "InputError", "DivisionProblem", "problem", "missing", "stop", "wrong"};
    return next.is("(") &&
           (kNames.contains(callee) || callee.starts_with("refuse") || callee.starts_with("fail"));
  }

  void add_arguments(SourceTokens arguments) {
    for (SourceTokens argument : split(arguments, ",")) {
      if (argument.empty()) continue;
      if (argument.front().is("{") && closing(argument, 0) + 1 == argument.size()) {
        add_arguments(argument.subspan(1, argument.size() - 2));
        continue;
      }
      if (argument.size() > 3 && argument[0].is(".") && argument[2].is("=")) {
        if (argument[1].words != "message" && argument[1].words != "expected") continue;
        argument = argument.subspan(3);
      }
      SourceTokens name = argument;  // of name, std::move(name), std::string(name)
      while (name.size() > 3 && name.back().is(")") && name[name.size() - 3].is("("))
        name = name.subspan(name.size() - 2, 1);
      if (name.size() == 1 && name[0].kind == SourceToken::Kind::name) add_assigned(name[0].words);
      add(texts_of(argument));
    }
  }

  /// What the file makes the name: a constant, or a text that is put together before.
  void add_assigned(const std::string& name) {
    if (!named_.insert(name).second) return;
    const SourceTokens all(tokens_);
    for (std::size_t i = 0; i + 3 < all.size(); ++i) {
      if (all[i].words != name || all[i].kind != SourceToken::Kind::name) continue;
      const std::size_t sign = all[i + 1].is("[") ? i + 3 : i + 1;
      if (!all[sign].is("=")) continue;
      const SourceTokens rest = all.subspan(sign + 1);
      add(texts_of(rest.first(outside(rest, ";"))));
    }
  }

  void add(const Texts& texts) {
    for (const Text& text : texts)
      if (text.words != value().front().words) found_.push_back({file_, text.words, text.said});
  }

  static Texts value() { return {{std::string(1, Refusal::kValue)}}; }

  static Texts either(SourceTokens sides) {
    int open = 0;  // questions of the first side
    int depth = 0;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      depth += depth_of(sides[i]);
      if (depth != 0) continue;
      if (sides[i].is("?")) ++open;
      if (!sides[i].is(":") || open-- > 0) continue;
      Texts all = texts_of(sides.first(i));
      for (Text& text : texts_of(sides.subspan(i + 1))) all.push_back(std::move(text));
      return all;
    }
    return value();
  }

  /// Every text that an expression can be.
  static Texts texts_of(SourceTokens expression) {
    if (expression.empty()) return value();
    if (const std::size_t asked = outside(expression, "?"); asked < expression.size())
      return either(expression.subspan(asked + 1));
    if (const auto parts = split(expression, "+"); parts.size() > 1) {
      Texts all{{}};
      for (const SourceTokens part : parts) {
        Texts longer;
        for (const Text& start : all)
          for (const Text& end : texts_of(part)) longer.push_back({start.words + end.words});
        all = std::move(longer);
      }
      return all;
    }
    if (expression.front().kind == SourceToken::Kind::text && expression.size() == 1)
      return {{expression.front().words}};
    return called(expression);
  }

  static Texts called(SourceTokens expression) {
    std::size_t open = 0;
    while (open < expression.size() &&
           (expression[open].kind == SourceToken::Kind::name || expression[open].is("::")))
      ++open;
    if (open == expression.size() || !(expression[open].is("(") || expression[open].is("{")) ||
        closing(expression, open) + 1 != expression.size())
      return value();
    const std::string callee = open == 0 ? "" : expression[open - 1].words;
    const SourceTokens arguments = expression.subspan(open + 1, expression.size() - open - 2);
    const SourceTokens first = arguments.first(outside(arguments, ","));
    static const std::set<std::string_view> kSame{"", "string", "string_view", "Said", "move"};
    if (kSame.contains(callee)) return texts_of(first);
    if (callee != "format" && callee != "say") return value();
    Texts all = texts_of(first);
    for (Text& text : all) text = {formatted(text.words), callee == "say"};
    return all;
  }

  std::string file_;
  std::vector<SourceToken> tokens_;
  std::set<std::string> named_;
  std::vector<Refusal> found_;
};

}  // namespace detail

inline std::vector<Refusal> refusals_in(const std::string& file, std::string_view source) {
  return detail::RefusalReader(file, source).read();
}

/// Of every .cpp and .h below the folders. Files are named from the project's root, as the folders.
inline std::vector<Refusal> refusals(const std::vector<std::string>& folders) {
  std::vector<Refusal> all;
  const std::filesystem::path root(SHARDPLAN_SOURCE_DIR);
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      std::ifstream stream(entry.path());
      const std::string source{std::istreambuf_iterator<char>(stream), {}};
      const std::string name = std::filesystem::relative(entry.path(), root).generic_string();
      for (Refusal& r : refusals_in(name, source)) all.push_back(std::move(r));
    }
  return all;
}

}  // namespace shardplan
