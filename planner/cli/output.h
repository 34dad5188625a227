// Where an answer goes, and what a program says when it ends.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "json/document.h"

namespace shardplan::cli {

/// Exit codes of the contract; `lint --strict` says 1 where there are warnings only; 130 as shells
/// have it for a program that SIGINT ended.
enum class Exit : int {
  done = 0,
  internal = 1,
  warnings = 1,
  usage = 2,
  bad_input = 3,
  does_not_fit = 4,
  interrupted = 130
};

/// Standard output did not take the answer: a full disk, a closed descriptor.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Answers go to standard output, or to a file that is written whole or not at all. Throws
/// OutputError or InputError (of -o) when they cannot.
struct Output {
  std::string format = "text";  ///< text or json
  std::string file;             ///< "": standard output

  bool json() const { return format == "json"; }
  /// For people: on standard output without control characters, and in ASCII where the locale has
  /// nothing else.
  void write_text(std::string_view text) const;
  /// The same care with \u escapes, which lose nothing.
  void write_json(const Json& json, int indent = 2) const;
  /// A file's content, as it is.
  void write_bytes(std::string_view bytes) const;
};

/// Writes a message on standard error, as write_text does. Where nobody can hear it, nothing
/// happens.
void tell(std::string_view text);

}  // namespace shardplan::cli
