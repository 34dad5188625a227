// Rows of data/published/serving.json as jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan::published_serving {

/// A published row, and what its family says of all.
struct Row {
  std::string family;
  std::string model, gpu;
  std::int64_t tensor = 1, prompt = 0, answer = 0;
  std::int64_t requests = 0;     ///< at once or queued at once; 0: more than the engine holds
  double tokens_per_second = 0;  ///< new ones, of all GPUs
  bool held_at_once = false;     ///< the engine ran all requests together
  bool refused = false;          ///< shardplan does not model this kind yet
  Json workload;

  std::string words() const {
    return family + ": " + model + " " + std::to_string(tensor) + "x" + gpu + " " +
           std::to_string(prompt) + "/" + std::to_string(answer) + ", " + std::to_string(requests);
  }
};

inline std::vector<Row> rows() {
  const Json table = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/serving.json");
  std::vector<Row> all;
  for (const Json& family : table.at("families"))
    for (const Json& r : family.at("rows"))
      all.push_back({family.at("name"), r[0], r[1], r[2], r[3], r[4], r[5], r[6],
                     family.value("held_at_once", false), family.contains("refused"),
                     family.at("workload")});
  return all;
}

inline Json job_of(const Row& row) {
  Json workload = row.workload;
  workload.update(
      Json{{"kind", "inference"}, {"prompt_length", row.prompt}, {"new_tokens", row.answer}});
  workload["engine"]["tensor_parallel"] = row.tensor;
  if (row.requests > 0) workload["batch"] = row.requests;
  return {{"model", row.model},
          {"cluster", std::to_string(row.tensor) + "x" + row.gpu},
          {"workload", workload}};
}

}  // namespace shardplan::published_serving
