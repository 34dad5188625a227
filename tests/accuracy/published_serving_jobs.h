// Rows of data/published/serving.json as jobs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "json/document.h"

namespace shardplan::published_serving {

/// A published row, and what its family says of all.
struct Row {
  std::string family;
  std::string model, gpu;
  std::int64_t tensor = 1, prompt = 0, answer = 0;
  std::int64_t requests = 0;  ///< at once or queued at once; 0: more than the engine holds
  /// Of prompt and answer, of requests that people wrote, which end by themselves. 0: all are
  /// alike.
  std::int64_t longest = 0;
  double tokens_per_second = 0;  ///< new ones, of all GPUs
  bool held_at_once = false;     ///< the engine ran all requests together
  bool keep_coming = false;      ///< as many are kept at once as `requests` says
  double token_seconds = 0;      ///< from token to token while no prompt is taken in; 0: not said
  double full_pass_seconds = 0;  ///< of a pass of as many tokens as it takes; 0: not said
  std::string stated_gpu;        ///< where `gpu` is another than its source states
  bool held_out = false;         ///< of another source than the constants of its engine
  double predicted = 0;          ///< before the row was compared, where its family says so
  bool prompts_assumed = false;  ///< the source does not say how long prompts are
  bool refused = false;          ///< shardplan does not model this kind yet
  bool answered_since = false;   ///< refused when its family's rows were first compared
  Json workload;

  std::string words() const {
    return family + ": " + model + " " + std::to_string(tensor) + "x" + gpu + " " +
           std::to_string(prompt) + "/" + std::to_string(answer) + ", " + std::to_string(requests);
  }
};

inline std::vector<Row> rows() {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/serving.json");
  std::vector<Row> all;
  for (const Json& family : table.at("families")) {
    const Json times = family.value("token_milliseconds", Json::array());
    for (std::size_t i = 0; i < family.at("rows").size(); ++i) {
      const Json& r = family.at("rows").at(i);
      Row row{family.at("name"), r[0], r[1], r[2], r[3], r[4], r[5]};
      row.tokens_per_second = r[6];
      const auto longest = family.value("longest_sequence", std::int64_t{0});
      if (row.prompt + row.answer < longest) row.longest = longest;
      row.held_at_once = family.value("held_at_once", false);
      row.keep_coming = family.value("keep_coming", false);
      if (family.value("predicted_first", false)) row.predicted = r[7];
      row.held_out = family.value("held_out", false);
      row.prompts_assumed = family.value("prompts_assumed", false);
      row.refused = family.contains("refused");
      row.answered_since = family.contains("answered_since");
      if (!times.empty() && !times.at(i).is_null())
        row.token_seconds = times.at(i).get<double>() / 1e3;
      if (const Json passes = family.value("full_pass_milliseconds", Json()); !passes.is_null())
        row.full_pass_seconds = passes.at(i).get<double>() / 1e3;
      row.stated_gpu = family.value("stated_gpu", std::string());
      row.workload = family.at("workload");
      all.push_back(std::move(row));
    }
  }
  return all;
}

inline Json job_of(const Row& row) {
  Json workload = row.workload;
  workload.update(
      Json{{"kind", "inference"}, {"prompt_length", row.prompt}, {"new_tokens", row.answer}});
  workload["engine"]["tensor_parallel"] = row.tensor;
  if (row.requests > 0) workload["batch"] = row.requests;
  if (!row.keep_coming && row.requests > 0) workload["engine"]["requests"] = row.requests;
  if (row.longest > 0) workload["engine"]["longest_answer"] = row.longest - row.prompt;
  return {{"model", row.model},
          {"cluster", std::to_string(row.tensor) + "x" + row.gpu},
          {"workload", workload}};
}

}  // namespace shardplan::published_serving
