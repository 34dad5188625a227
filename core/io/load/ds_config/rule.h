// One rule of the linter, whole: what it is called, why it is one, where that is written, what to
// do, how it is found and how it is repaired. A rule is one file below rules/, here or in
// planner/lint; its family lists it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "load/ds_config/edit.h"
#include "load/ds_config/findings.h"

namespace shardplan {

/// The edits of the ds_config that cure a finding of the rule; empty where a person must choose.
using Repair = std::vector<Edit> (*)(const Diagnostic& finding, const Json& document);

/// The file that a rule's findings are about.
enum class RuleFile : std::uint8_t { ds_config, accelerate, arguments };

struct Rule {
  RuleId id;
  Severity severity = Severity::error;
  std::string_view title;        ///< a sentence without a full stop
  std::string_view explanation;  ///< what happens, and why that is bad
  std::string_view source;       ///< the code or the page that says so
  std::string_view advice;       ///< what to do
  RuleFile file = RuleFile::ds_config;
  Repair repair = nullptr;
};

/// Takes the findings of one rule: a rule's name and severity are said once, in its file.
class Report {
 public:
  Report(const Rule& rule, DsFindings& findings) : rule_(rule), findings_(findings) {}

  void operator()(std::string key, Said message, Said expected = "",
                  std::string nearest = "") const {
    findings_.add(rule_.severity, rule_.id, std::move(key), std::move(message), std::move(expected),
                  std::move(nearest));
  }

 private:
  const Rule& rule_;
  DsFindings& findings_;
};

/// A rule and how it is found. The subject is all that the check may look at: a checked ds_config,
/// one key, a companion file, a priced job.
template <typename Subject>
struct CheckedRule {
  Rule rule;
  void (*check)(const Subject& subject, const Report& report) = nullptr;
};

/// In the order in which they are listed, which is the order of findings about one place.
template <typename Subject>
void check_rules(std::span<const CheckedRule<Subject>> rules, const Subject& subject,
                 DsFindings& findings) {
  for (const CheckedRule<Subject>& r : rules) r.check(subject, Report(r.rule, findings));
}

namespace detail {

inline void append(std::vector<Rule>& all, const Rule& rule) {
  all.push_back(rule);
}
inline void append(std::vector<Rule>& all, std::span<const Rule> rules) {
  all.insert(all.end(), rules.begin(), rules.end());
}
template <typename Subject>
void append(std::vector<Rule>& all, std::span<const CheckedRule<Subject>> rules) {
  for (const CheckedRule<Subject>& r : rules) all.push_back(r.rule);
}

}  // namespace detail

/// The rules of several lists, whatever their subjects, and single ones that a parser throws.
template <typename... Lists>
std::vector<Rule> rules_in(const Lists&... lists) {
  std::vector<Rule> all;
  (detail::append(all, lists), ...);
  return all;
}

}  // namespace shardplan
