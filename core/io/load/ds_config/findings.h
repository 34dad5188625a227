// Collects what the checks find about one ds_config.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"

namespace shardplan {

class DsFindings {
 public:
  explicit DsFindings(std::string file) : file_(std::move(file)) {}

  void error(RuleId rule, std::string key, Said message, Said expected = "",
             std::string nearest = "") {
    add(Severity::error, rule, std::move(key), std::move(message), std::move(expected),
        std::move(nearest));
  }
  void warning(RuleId rule, std::string key, Said message, Said expected = "",
               std::string nearest = "") {
    add(Severity::warning, rule, std::move(key), std::move(message), std::move(expected),
        std::move(nearest));
  }
  void note(RuleId rule, std::string key, Said message, Said expected = "") {
    add(Severity::note, rule, std::move(key), std::move(message), std::move(expected), "");
  }

  const std::string& file() const { return file_; }
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
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

  std::string file_;
  std::vector<Diagnostic> all_;
};

}  // namespace shardplan
