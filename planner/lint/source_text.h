// A file as the linter gets it: its text, before anything is read of it.
#pragma once

#include <string>

namespace shardplan {

struct SourceText {
  std::string file;  ///< names it in findings
  std::string text;
};

}  // namespace shardplan
