#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "questions/coverage.h"
#include "render/accuracy_text.h"

namespace shardplan {
namespace {

bool is_seconds(std::size_t figure) {
  return static_cast<Figure>(figure) == Figure::step_seconds;
}

Json number(std::size_t figure, std::optional<double> value) {
  if (!value) return nullptr;
  return is_seconds(figure) ? Json(*value) : Json(static_cast<std::int64_t>(*value));
}

Json summary_json(const ErrorSummary& s) {
  return Json{{"count", s.count},
              {"mean_absolute_error", s.mean_absolute},
              {"mean_error", s.mean_signed},
              {"largest_error", s.largest},
              {"worst", s.worst}};
}

Json group_json(const GroupSummary& group) {
  Json figures = Json::object();
  for (std::size_t f = 0; f < kFigureCount; ++f)
    if (group.figures[f].count > 0)
      figures[std::string(kFigureNames[f])] = summary_json(group.figures[f]);
  return Json{{"name", group.name}, {"records", group.records}, {"figures", std::move(figures)}};
}

Json comparison_json(const Comparison& c) {
  Json figures = Json::object();
  for (std::size_t f = 0; f < kFigureCount; ++f) {
    if (!c.measured[f]) continue;
    const auto error = relative_error(c.predicted[f], c.measured[f]);
    figures[std::string(kFigureNames[f])] = Json{{"predicted", number(f, c.predicted[f])},
                                                 {"measured", number(f, c.measured[f])},
                                                 {"error", error ? Json(*error) : Json(nullptr)}};
  }
  const auto bound = [&](Figure figure, const Range& range) {
    const std::string name(kFigureNames[index_of(figure)]);
    if (figures.contains(name)) figures[name]["upper"] = range.upper;
  };
  bound(Figure::reserved, c.reserved);
  bound(Figure::device, c.device);
  Json rules = Json::object();
  for (std::size_t i = 0; i < kPeerRules.size(); ++i)
    if (c.peers[i]) rules[std::string(kPeerRules[i].name)] = *c.peers[i];
  if (c.step_seconds_as_timed)
    figures[std::string(kFigureNames[index_of(Figure::step_seconds)])]["as_timed"] =
        *c.step_seconds_as_timed;
  return Json{{"name", c.name},           {"file", c.file},
              {"framework", c.framework}, {"model", c.model},
              {"precision", c.precision}, {"figures", std::move(figures)},
              {"rules", std::move(rules)}};
}

/// A field of a CSV line; names come from files.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

Json accuracy_json(const Accuracy& a) {
  Json json{{"schema", "shardplan.accuracy/1"}, {"all", group_json(a.all)}};
  json["groups"] = Json::array();
  for (const GroupSummary& group : a.groups) json["groups"].push_back(group_json(group));
  json["hosts"] = Json::array();
  for (const HostSummary& s : a.hosts)
    json["hosts"].push_back(Json{{"name", s.name},
                                 {"step_seconds", summary_json(s.predicted)},
                                 {"step_seconds_as_timed", summary_json(s.timed)},
                                 {"tokens_per_second", summary_json(s.tokens_predicted)},
                                 {"tokens_per_second_as_timed", summary_json(s.tokens_timed)}});
  json["bounds"] = Json::array();
  for (const Coverage& c : coverage_of(a.comparisons, a.bound_records))
    json["bounds"].push_back(Json{{"name", c.name},
                                  {"runs", c.runs},
                                  {"within", c.share()},
                                  {"median_width", c.median_width},
                                  {"farthest_beyond", std::max(c.worst, 0.0)},
                                  {"worst", c.worst_name}});
  json["verdicts"] = Json::array();
  for (const VerdictCount& v : verdict_counts(a.comparisons))
    if (v.runs > 0)
      json["verdicts"].push_back(Json{{"name", v.name},
                                      {"runs", v.runs},
                                      {"fits", v.fits},
                                      {"fits_wrong", v.wrongly_fit},
                                      {"tight", v.tight},
                                      {"does_not_fit", v.refused},
                                      {"does_not_fit_wrong", v.wrongly_refused},
                                      {"wrong", v.wrong}});
  json["rules"] = Json::array();
  for (std::size_t i = 0; i < kPeerRules.size(); ++i)
    json["rules"].push_back(Json{{"name", kPeerRules[i].name},
                                 {"allocated_peak", summary_json(a.peers[i])},
                                 {"shardplan", summary_json(a.ours_on_peers[i])}});
  json["records"] = Json::array();
  for (const Comparison& c : a.comparisons) json["records"].push_back(comparison_json(c));
  json["bad_records"] = Json::array();
  for (const Diagnostic& d : a.bad) json["bad_records"].push_back(to_string(d));
  return json;
}

std::string accuracy_csv(const Accuracy& a) {
  std::string text = "record,framework,model,precision,figure,predicted,measured,delta,error\n";
  for (const Comparison& c : a.comparisons) {
    for (std::size_t f = 0; f < kFigureCount; ++f) {
      const auto error = relative_error(c.predicted[f], c.measured[f]);
      if (!error) continue;
      const auto value = [&](double v) {
        return is_seconds(f) ? fmt::format("{:.6f}", v)
                             : fmt::format("{}", static_cast<std::int64_t>(v));
      };
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{:.6f}\n", quoted(c.name), quoted(c.framework),
                      quoted(c.model), quoted(c.precision), kFigureNames[f], value(*c.predicted[f]),
                      value(*c.measured[f]), value(*c.predicted[f] - *c.measured[f]), *error);
    }
  }
  return text;
}

}  // namespace shardplan
