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

  void error(std::string key, std::string message, std::string expected = "",
             std::string nearest = "") {
    add(Severity::error, std::move(key), std::move(message), std::move(expected),
        std::move(nearest));
  }
  void warning(std::string key, std::string message, std::string expected = "",
               std::string nearest = "") {
    add(Severity::warning, std::move(key), std::move(message), std::move(expected),
        std::move(nearest));
  }
  void note(std::string key, std::string message) {
    add(Severity::note, std::move(key), std::move(message), "", "");
  }

  const std::string& file() const { return file_; }
  const std::vector<Diagnostic>& all() const { return all_; }

 private:
  void add(Severity severity, std::string key, std::string message, std::string expected,
           std::string nearest) {
    all_.push_back({severity, file_, std::move(key), std::move(message), std::move(expected),
                    std::move(nearest)});
  }

  std::string file_;
  std::vector<Diagnostic> all_;
};

}  // namespace shardplan
