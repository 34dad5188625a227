#include "render/lint_data.h"

#include <fmt/format.h>

#include <cctype>

#include "lint/registry.h"
#include "load/ds_config/version.h"

namespace shardplan {
namespace {

Json edit_json(const Edit& edit) {
  switch (edit.kind) {
    case Edit::Kind::remove:
      return Json{{"remove", edit.path}};
    case Edit::Kind::rename:
      return Json{{"rename", edit.path}, {"to", edit.to}};
    case Edit::Kind::set:
      break;
  }
  return Json{{"set", edit.path}, {"value", edit.value}};
}

Json finding_json(const LintFinding& finding) {
  const Diagnostic& d = finding.diagnostic;
  Json json{{"rule", finding.rule->id.text()},
            {"severity", name_of(finding.rule->severity)},
            {"file", d.file},
            {"line", d.position.line},
            {"column", d.position.column},
            {"key", d.key},
            {"message", d.message}};
  if (!d.expected.empty()) json["expected"] = d.expected;
  if (!d.nearest.empty()) json["nearest"] = d.nearest;
  json["edits"] = Json::array();
  for (const Edit& edit : finding.edits) json["edits"].push_back(edit_json(edit));
  return json;
}

Json delta_json(const PriceDelta& delta) {
  return {{"gpu_bytes", delta.gpu},
          {"host_bytes_per_node", delta.host},
          {"nvme_bytes_per_node", delta.nvme},
          {"time_factor", delta.pace}};
}

Json cost_json(const KeyCost& cost) {
  Json json{{"key", cost.path},
            {"value", cost.value},
            {"given", cost.given},
            {"without", cost.without},
            {"costs", cost.costs ? delta_json(*cost.costs) : Json()}};
  if (!cost.problem.empty()) json["problem"] = cost.problem;
  if (cost.better)
    json["better"] = Json{{"value", cost.better->value},
                          {"change", delta_json(cost.better->change)},
                          {"fits", cost.better->fits}};
  return json;
}

/// A reference of RFC 3986; an absolute path has the scheme that SARIF asks for.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri;
}

Json sarif_rule(const Rule& rule, std::string_view family) {
  return {{"id", rule.id.text()},
          {"shortDescription", {{"text", rule.title}}},
          {"fullDescription", {{"text", rule.explanation}}},
          {"help", {{"text", fmt::format("{} Source: {}", rule.advice, rule.source)}}},
          {"defaultConfiguration", {{"level", name_of(rule.severity)}}},
          {"properties", {{"tags", Json::array({family})}}}};
}

Json sarif_result(const LintFinding& finding, std::size_t index) {
  Diagnostic d = finding.diagnostic;
  Json location{{"artifactLocation", {{"uri", uri_of(d.file)}}}};
  if (d.position.known())
    location["region"] = Json{{"startLine", d.position.line}, {"startColumn", d.position.column}};
  d.file.clear();
  d.position = {};
  return {{"ruleId", finding.rule->id.text()},
          {"ruleIndex", index},
          {"level", name_of(finding.rule->severity)},
          {"message", {{"text", to_string(d)}}},
          {"locations", Json::array({Json{{"physicalLocation", location}}})}};
}

}  // namespace

Json lint_json(const LintReport& report) {
  Json json{{"schema", "shardplan.lint/1"},
            {"deepspeed_version", to_string(report.version)},
            {"auto_resolver", name_of(report.resolver)},
            {"errors", report.count(Severity::error)},
            {"warnings", report.count(Severity::warning)},
            {"notes", report.count(Severity::note)},
            {"findings", Json::array()},
            {"autos", Json::array()}};
  for (const LintFinding& finding : report.findings)
    json["findings"].push_back(finding_json(finding));
  for (const ResolvedAuto& resolved : report.autos)
    json["autos"].push_back(
        Json{{"key", resolved.path}, {"value", resolved.value}, {"rule", resolved.rule}});
  if (report.now) {
    const Price& price = report.now->price;
    json["estimate"] = Json{{"subject", report.subject},
                            {"gpu_bytes", price.gpu},
                            {"host_bytes_per_node", price.host},
                            {"nvme_bytes_per_node", price.nvme},
                            {"fits", price.fits},
                            {"assumed", report.assumed}};
    json["costs"] = Json::array();
    for (const KeyCost& cost : report.costs) json["costs"].push_back(cost_json(cost));
  } else if (!report.not_priced.empty()) {
    json["not_priced"] = report.not_priced.text;
  }
  return json;
}

Json lint_sarif(const LintReport& report, std::string_view version) {
  Json rules = Json::array();
  Json results = Json::array();
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules) rules.push_back(sarif_rule(rule, family.name));
  const auto index_of = [&](const Rule& wanted) {
    std::size_t index = 0;
    for (const RuleFamily& family : rule_families())
      for (const Rule& rule : family.rules) {
        if (&rule == &wanted) return index;
        ++index;
      }
    return index;
  };
  for (const LintFinding& finding : report.findings)
    results.push_back(sarif_result(finding, index_of(*finding.rule)));
  const Json driver{{"name", "shardplan lint"}, {"version", version}, {"rules", std::move(rules)}};
  Json run{{"tool", {{"driver", driver}}},
           {"columnKind", "unicodeCodePoints"},
           {"results", std::move(results)}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({std::move(run)})}};
}

}  // namespace shardplan
