// Collects what the checks find about one file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace shardplan {

class DsFindings {
 public:
  explicit DsFindings(std::string file) : file_(std::move(file)) {}

  void add(Severity severity, RuleId rule, std::string key, Said message, Said expected,
           std::string nearest) {
    all_.push_back({.severity = severity,
                    .file = file_,
                    .key = std::move(key),
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(nearest),
                    .rule = rule});
  }

  const std::string& file() const { return file_; }
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
  std::string file_;
  std::vector<Diagnostic> all_;
};

}  // namespace shardplan
