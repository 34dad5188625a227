// What goes wrong: an input that cannot be understood. That a job does not fit is an answer.
#pragma once

#include <exception>
#include <string>

#include "shardplan/export.h"

namespace shardplan::api {

/// The message of the command line and its parts; "" or 0: not known.
struct ErrorParts {
  std::string file;      ///< as it was given; a text by its name, "<command line>" for an option
  std::string key;       ///< framework.name, --micro-batch
  std::string message;   ///< what is wrong
  std::string expected;  ///< what would have been right
  std::string nearest;   ///< the nearest spelling, of a name that nobody knows
  int line = 0;          ///< in the file, from 1 on
  int column = 0;
};

/// Thrown for a bad input, and for a job too large to compute.
class SHARDPLAN_API Error : public std::exception {
 public:
  Error(std::string what, ErrorParts parts);
  ~Error() override;
  Error(const Error&);
  Error& operator=(const Error&);

  /// The whole message, in one line.
  const char* what() const noexcept override;
  const ErrorParts& parts() const noexcept;

 private:
  std::string what_;
  ErrorParts parts_;
};

}  // namespace shardplan::api
