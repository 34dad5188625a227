// vLLM 0.25 with Qwen3-8B in fp8 and in 16 bits on one H200 (data/measurements/serving/
// vllm_h200_fp8.json), predicted before it ran. That fp8's operands have a kernel of their own was
// found with these runs in view; its time is that of such kernels elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine_rows.h"
#include "estimate/serving.h"

namespace shardplan::engine_fp8_test {
namespace {

using engine_rows::error;
using engine_rows::estimated;
using engine_rows::Mean;

const Json& rows() {
  static const Json json =
      read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/serving/vllm_h200_fp8.json");
  return json.at("rows");
}

TEST(EngineInFp8, HasAsManyBlocks) {
  for (const Json& row : rows()) {
    const Estimate e = estimated(row, row.at("loads").at(0));
    const double blocks =
        error(static_cast<double>(e.serving->memory.blocks), row.at("told").at("blocks"));
    RecordProperty(row.at("name").get<std::string>(), std::to_string(blocks));
    EXPECT_LE(std::abs(blocks), 0.01) << row.at("name");
  }
}

// 256 sequences wait for the host, whose pace is the machine's.
TEST(EngineInFp8, AnswersAsFast) {
  for (const Json& row : rows()) {
    Mean tokens, rates;
    for (const Json& load : row.at("loads")) {
      const Estimate e = estimated(row, load);
      const Json& m = load.at("measured");
      const double token = error(e.serving->quiet_token_seconds, m.at("decode_seconds"));
      const double rate = e.serving->tokens_per_second * m.at("seconds").get<double>() /
                              m.at("tokens").get<double>() -
                          1;
      RecordProperty(load.at("name").get<std::string>(),
                     "a token " + std::to_string(token) + ", all " + std::to_string(rate));
      if (load.at("batch") == 256) continue;
      tokens.add(token);
      rates.add(rate);
    }
    EXPECT_EQ(tokens.count, 3);
    EXPECT_LE(tokens.error(), 0.08) << row.at("name");
    EXPECT_LE(rates.error(), 0.1) << row.at("name");
  }
}

}  // namespace
}  // namespace shardplan::engine_fp8_test
