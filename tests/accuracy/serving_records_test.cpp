// Passes of a serving engine on an H100 (data/measurements/serving), against the planner's times
// of them. The records have PyTorch's own kernels in CUDA graphs and no engine's host.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine_rows.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"
#include "serving/engine_pass.h"

namespace shardplan::serving_records_test {
namespace {

using engine_rows::Mean;

TEST(ServingRecords, PassesTakeWhatTheyTook) {
  const Json records = read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/serving/h100.json");
  const HardwareCatalog hardware = load_hardware_catalog();
  const TimeRates rates = load_calibration().time;
  Mean tokens, prompts;
  for (const Json& record : records.at("rows")) {
    Json json = record.at("job");
    json["model"] =
        SHARDPLAN_SOURCE_DIR "/tests/accuracy/measure/cases/" + json.at("model").get<std::string>();
    const Job job = load_job(json, "job.json", {.hardware = &hardware});
    const ServedNetwork network(job.model, job.plan, rates);
    const Workload& w = job.plan.workload;
    const auto prompt = static_cast<double>(w.sequence_length);
    const auto of = [&](const EngineLoad& load, const char* measured) {
      const EnginePassTime pass = network.time_of(load);
      const double error =
          (pass.seconds() - pass.host) / record.at("measured").at(measured).get<double>() - 1;
      RecordProperty(record.at("name").get<std::string>() + ", " + measured, std::to_string(error));
      return error;
    };
    tokens.add(of({.decoding = static_cast<double>(w.micro_batch),
                   .context = prompt + static_cast<double>(w.generation.new_tokens) / 2},
                  "decode_seconds"));
    prompts.add(of({.prompt_tokens = prompt, .prompt_length = prompt}, "prompt_seconds"));
  }
  RecordProperty("a token each: bias", std::to_string(tokens.bias()));
  RecordProperty("a prompt: bias", std::to_string(prompts.bias()));
  EXPECT_EQ(tokens.count, 9);
  EXPECT_LE(tokens.error(), 0.09) << tokens.bias();
  EXPECT_LE(prompts.error(), 0.05) << prompts.bias();
}

}  // namespace
}  // namespace shardplan::serving_records_test
