// Checkpoints of runs with states on the host or on NVMe.
#include <utility>

#include "validator/cli/checkpoint_testing.h"

namespace shardplan::validator::checkpoint_test {
namespace {

/// The files of two checkpoints that are of values alone.
void expect_same_shards(const std::string& a, const std::string& b, const std::string& what) {
  std::int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rank-")) continue;
    EXPECT_EQ(text_of(entry.path().string()), text_of(b + "/" + name)) << what << ": " << name;
    ++files;
  }
  EXPECT_GT(files, 0) << what;
}

TEST_F(ValidateSaves, states_wherever_they_are_with_the_same_bits) {
  fs::create_directory(path("disk"));
  const std::pair<int, const char*> runs[] = {{0, "bf16-pure"},
                                              {1, "bf16-master"},
                                              {2, "bf16-master"},
                                              {3, "bf16-pure"},
                                              {3, "bf16-master"}};
  for (const auto& [stage, precision] : runs)
    for (const char* kept : {"none", "cpu", "nvme"})
      for (const char* parameters : {"none", "cpu", "nvme"}) {
        const bool moved = std::string(parameters) != "none";
        if (moved && (stage < 3 || std::string(kept) == "none")) continue;
        const std::string what = std::string(precision) + ", stage " + std::to_string(stage) +
                                 ", states " + kept + ", parameters " + parameters;
        expect_same_bits(job_with([&, at = at_stage(stage, precision)](Json& j) {
                           at(j);
                           j["framework"]["offload_optimizer"] = kept;
                           j["framework"]["offload_param"] = parameters;
                           j["run"]["nvme"] = {{"path", path("disk")}};
                         }),
                         what);
        if (std::string(kept) == "none") {
          fs::remove_all(path("on_gpu"));
          fs::rename(path("a") + "/step-6", path("on_gpu"));
        } else {
          expect_same_shards(path("on_gpu"), path("a") + "/step-6", what);
        }
      }
}

TEST_F(ValidateSaves, what_goes_with_states_on_the_host_with_the_same_bits) {
  const auto host = [](Json& j) {
    at_stage(2, "bf16-master")(j);
    j["framework"]["offload_optimizer"] = "cpu";
    j["checkpointing"] = {{"policy", "selective"}, {"offload", true}};
  };
  expect_same_bits(job_with([&](Json& j) {
                     host(j);
                     j["workload"]["method"] = "lora";
                     j["workload"]["lora"] = {{"rank", 4}, {"targets", {"all-linear"}}};
                   }),
                   "adapters");
  expect_same_bits(job_with([&](Json& j) {
                     host(j);
                     j["cluster"] = "4xA100-40GB";
                     j["parallel"] = {{"tensor", 2}};
                   }),
                   "layers shared");
  expect_same_bits(job_with([&](Json& j) {
                     host(j);
                     j["precision"] = {{"preset", "bf16-master"}, {"linear", "fp8-tensorwise"}};
                     j["cluster"] = "2xH100";
                   }),
                   "fp8");
  expect_same_bits(job_with([&](Json& j) {
                     host(j);
                     j["precision"] = {{"preset", "bf16-master"}, {"linear", "fp8-rowwise"}};
                     j["cluster"] = "2xH100";
                     j["workload"]["method"] = "lora";
                     j["workload"]["lora"] = {{"rank", 4}, {"targets", {"all-linear"}}};
                   }),
                   "fp8, adapters");
}

/// What is saved of a step whose update is made beside the next one: its gradients too.
TEST_F(ValidateSaves, delayed_updates_with_the_same_bits) {
  fs::create_directory(path("disk"));
  const auto delayed = [&](int stage, const char* precision, const char* kept) {
    return [=, at = at_stage(stage, precision), disk = path("disk")](Json& j) {
      at(j);
      j["framework"]["offload_optimizer"] = kept;
      j["framework"]["delayed_update"] = true;
      if (stage == 3) j["framework"]["offload_param"] = kept;
      j["run"]["nvme"] = {{"path", disk}};
      // In fp16 some steps overflow: they leave nothing to be made.
      j["run"]["loss_scale"] = {{"initial", 0x1p18}, {"window", 1}, {"hysteresis", 1}};
    };
  };
  expect_same_bits(job_with(delayed(0, "bf16-pure", "cpu")), "stage 0");
  expect_same_bits(job_with(delayed(1, "fp16-master", "cpu")), "stage 1");
  expect_same_bits(job_with(delayed(2, "bf16-master", "nvme")), "stage 2");
  expect_same_bits(job_with(delayed(3, "bf16-master", "cpu")), "stage 3");
  expect_same_bits(job_with(delayed(3, "bf16-pure", "nvme")), "stage 3, all on NVMe");
  EXPECT_THAT(refusal(
                  [&](Json& j) {
                    delayed(3, "bf16-pure", "nvme")(j);
                    j["framework"]["delayed_update"] = false;
                  },
                  {"--steps", "9"}),
              HasSubstr("run.delayed_update: the job has false"));
}

/// A run goes on with its states elsewhere.
TEST_F(ValidateSaves, and_goes_on_with_states_somewhere_else) {
  const auto job = [&](const char* kept) {
    return job_with([&](Json& j) {
      at_stage(2, "bf16-master")(j);
      j["framework"]["offload_optimizer"] = kept;
      j["run"]["nvme"] = {{"path", path("")}};
    });
  };
  const Json all = save_half(job("cpu"));
  for (const char* kept : {"none", "nvme"}) {
    const Json rest = steps_of(told(job(kept), {"--resume", path("a") + "/step-3"}));
    ASSERT_EQ(rest.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rest[i], all.at(3 + i)) << kept << ", " << i;
  }
}

TEST_F(ValidateSaves, states_on_the_host_take_what_is_planned_and_are_made_whole) {
  const auto host = [](Json& j) {
    at_stage(3, "bf16-master")(j);
    j["framework"]["offload_optimizer"] = "cpu";
    j["framework"]["offload_param"] = "cpu";
  };
  const std::vector<std::string> more{"--save-form", "both", "--save-states"};
  const auto saved = [&](const Change& change, const char* to) {
    std::vector<std::string> all{"--save", path(to)};
    all.insert(all.end(), more.begin(), more.end());
    return told(job_with(change), all).at("record").at("ranks");
  };
  const Json ranks = saved(host, "a");
  for (const Json& rank : ranks) {
    const Json& save = rank.at("save");
    for (const char* what : {"device_peak", "staging", "shard", "whole"})
      EXPECT_EQ(save.at(what), save.at("dry_run").at(what)) << what;
    EXPECT_EQ(save.at("staging"), 0) << "everything lies on the host";
  }
  saved(at_stage(3, "bf16-master"), "b");
  for (const char* name : {"weights/model.safetensors", "optimizer/states.safetensors"})
    EXPECT_EQ(text_of(path("a") + "/step-6/" + name), text_of(path("b") + "/step-6/" + name))
        << name;
}

}  // namespace
}  // namespace shardplan::validator::checkpoint_test
