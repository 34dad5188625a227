// What is wrong with an input, in a form that every front end prints the same way.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rule_id.h"
#include "base/said.h"

namespace shardplan {

enum class Severity { note, warning, error };

/// note, warning or error: the levels of compilers, and of SARIF.
constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

/// A place in a text, both counted from 1; a line of 0: not known. Columns are code points.
struct TextPosition {
  int line = 0;
  int column = 0;
  bool known() const { return line > 0; }
  friend bool operator==(const TextPosition&, const TextPosition&) = default;
};

/// One finding about an input. Empty fields are unknown and not printed.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string file;       ///< path as the user gave it, or "<command line>"
  std::string key;        ///< path of the key: zero_optimization.stage, tensors[3][1]
  Said message;           ///< what is wrong
  Said expected;          ///< what would have been right
  std::string nearest;    ///< the nearest valid spelling, if a name was unknown
  TextPosition position;  ///< in the file, where it is known
  RuleId rule;            ///< the check that found it, where it has a name
};

/// "job.json: framework.name: unknown framework 'fdsp2'; expected one of ...; did you mean
/// 'fsdp2'?"
std::string to_string(const Diagnostic& diagnostic);

/// Thrown by everything that reads an input; caught once, at the edge of the program.
class InputError : public std::exception {
 public:
  explicit InputError(Diagnostic diagnostic)
      : diagnostic_(std::move(diagnostic)), what_(to_string(diagnostic_)) {}
  const Diagnostic& diagnostic() const { return diagnostic_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  Diagnostic diagnostic_;
  std::string what_;
};

}  // namespace shardplan
