// shardplan-validate saves checkpoints and goes on from them: the same bits as a run that was never
// interrupted, or a message that says why not.
#include <algorithm>
#include <filesystem>

#include "validator/cli/checkpoint_testing.h"

namespace shardplan::validator::checkpoint_test {
namespace {

TEST_F(ValidateSaves, and_goes_on_with_the_same_bits_at_every_stage_in_every_precision) {
  for (const char* precision : {"fp32", "bf16-master", "bf16-pure", "fp16-master"})
    for (const int stage : {0, 1, 2, 3})
      expect_same_bits(
          job_with([&](Json& j) {
            at_stage(stage, precision)(j);
            // In fp16 the scale falls and rises before the checkpoint, and after it.
            if (std::string(precision) == "fp16-master")
              j["run"]["loss_scale"] = {{"initial", 0x1p18}, {"window", 1}, {"hysteresis", 1}};
          }),
          std::string(precision) + ", stage " + std::to_string(stage));
}

TEST_F(ValidateSaves, loss_scales_that_move_before_and_after_the_checkpoint) {
  const Json steps = save_half(job_with([](Json& j) {
    at_stage(1, "fp16-master")(j);
    j["run"]["loss_scale"] = {{"initial", 0x1p18}, {"window", 1}, {"hysteresis", 1}};
  }));
  EXPECT_TRUE(steps.at(0).at("skipped").get<bool>());
  EXPECT_NE(steps.at(3).at("loss_scale"), steps.at(0).at("loss_scale"));
  EXPECT_NE(steps.at(4).at("loss_scale"), steps.at(3).at("loss_scale"));
}

void tiny_experts(Json& j) {
  j["model"] = {
      {"model_type", "qwen3_moe"}, {"hidden_size", 32},      {"moe_intermediate_size", 16},
      {"intermediate_size", 64},   {"num_hidden_layers", 2}, {"num_attention_heads", 2},
      {"num_key_value_heads", 1},  {"head_dim", 16},         {"num_experts", 4},
      {"num_experts_per_tok", 2},  {"vocab_size", 256},      {"max_position_embeddings", 64}};
}

void tiny_llama(Json& j) {
  j["model"] = {{"model_type", "llama"},       {"hidden_size", 32},
                {"intermediate_size", 48},     {"num_hidden_layers", 2},
                {"num_attention_heads", 4},    {"num_key_value_heads", 2},
                {"vocab_size", 200},           {"max_position_embeddings", 64},
                {"tie_word_embeddings", false}};
}

TEST_F(ValidateSaves, however_a_network_is_divided) {
  for (const char* parallel : {R"({"tensor": 2})", R"({"context": 2})", R"({"pipeline": 2})",
                               R"({"tensor": 4})", R"({"pipeline": 2, "tensor": 2})"})
    for (const int stage : {0, 1})
      expect_same_bits(job_with([&](Json& j) {
                         at_stage(stage, "bf16-master")(j);
                         j["cluster"] = "4xA100-40GB";
                         j["parallel"] = Json::parse(parallel);
                       }),
                       parallel + std::to_string(stage));
  for (const int stage : {0, 1, 2, 3})
    expect_same_bits(job_with([&](Json& j) {
                       at_stage(stage, "bf16-master")(j);
                       tiny_experts(j);
                       j["cluster"] = "4xA100-40GB";
                       j["parallel"]["expert"] = 2;
                     }),
                     "experts, stage " + std::to_string(stage));
  for (const char* parallel : {R"({"pipeline": 2, "expert": 2})", R"({"context": 2, "expert": 2})",
                               R"({"context": 2, "expert": 4})"})
    expect_same_bits(job_with([&](Json& j) {
                       at_stage(1, "bf16-master")(j);
                       tiny_experts(j);
                       j["cluster"] = "4xA100-40GB";
                       j["parallel"] = Json::parse(parallel);
                     }),
                     std::string("experts, ") + parallel);
  for (const int stage : {0, 1, 3})
    for (const int experts : {1, 2, 4})
      expect_same_bits(job_with([&](Json& j) {
                         at_stage(stage, "bf16-master")(j);
                         tiny_experts(j);
                         j["model"]["num_key_value_heads"] = 2;
                         j["cluster"] = "4xA100-40GB";
                         j["parallel"] = {{"tensor", 2}, {"expert", experts}};
                       }),
                       "experts " + std::to_string(experts) + ", stage " + std::to_string(stage));
}

TEST_F(ValidateSaves, adapters_and_their_base_in_4_bits) {
  for (const int stage : {0, 1, 3})
    for (const bool quantized : {false, true})
      expect_same_bits(job_with([&](Json& j) {
                         at_stage(stage, "bf16-master")(j);
                         j["workload"]["method"] = "lora";
                         j["workload"]["lora"] = {{"rank", 4}, {"targets", {"all-linear"}}};
                         if (quantized) j["workload"]["lora"]["quantization"] = "nf4_double";
                       }),
                       std::to_string(stage) + (quantized ? " in 4 bits" : ""));
}

TEST_F(ValidateSaves, adapters_beside_experts_and_of_experts) {
  for (const int stage : {0, 1, 3})
    for (const char* kept :
         {R"({})", R"({"quantization": "nf4_double"})",
          R"({"target_parameters": ["experts.gate_up_proj", "experts.down_proj"]})",
          R"({"target_parameters": ["experts.gate_up_proj"], "quantization": "nf4"})",
          R"({"target_parameters": ["experts.gate_up_proj", "experts.down_proj"],
              "quantization": "nf4_double", "quantize_experts": true})"})
      expect_same_bits(job_with([&](Json& j) {
                         at_stage(stage, "bf16-master")(j);
                         tiny_experts(j);
                         j["cluster"] = "4xA100-40GB";
                         j["parallel"]["expert"] = 2;
                         j["workload"]["method"] = "lora";
                         j["workload"]["lora"] = Json::parse(kept);
                         j["workload"]["lora"]["rank"] = 4;
                         j["workload"]["lora"]["targets"] = {"all-linear"};
                       }),
                       std::to_string(stage) + kept);
}

TEST_F(ValidateSaves, adapters_of_shared_layers_and_stages) {
  expect_same_bits(job_with([&](Json& j) {
                     at_stage(1, "bf16-master")(j);
                     tiny_llama(j);
                     j["cluster"] = "4xA100-40GB";
                     j["parallel"] = {{"tensor", 2}, {"pipeline", 2}};
                     j["workload"]["method"] = "lora";
                     j["workload"]["lora"] = {{"rank", 4}, {"targets", {"all-linear"}}};
                   }),
                   "tensor 2, pipeline 2");
}

TEST_F(ValidateSaves, products_in_fp8_of_shared_layers) {
  for (const char* linear : {"fp8-tensorwise", "fp8-rowwise"})
    for (const bool adapters : {false, true})
      expect_same_bits(job_with([&](Json& j) {
                         at_stage(1, "bf16-master")(j);
                         tiny_llama(j);
                         j["model"]["intermediate_size"] = 64;
                         j["precision"] = {{"preset", "bf16-master"}, {"linear", linear}};
                         j["cluster"] = "4xH100";
                         j["parallel"] = {{"tensor", 2}};
                         if (!adapters) return;
                         j["workload"]["method"] = "lora";
                         j["workload"]["lora"] = {{"rank", 4}, {"targets", {"all-linear"}}};
                       }),
                       std::string(linear) + (adapters ? ", adapters" : ""));
}

TEST_F(ValidateSaves, perceptron_too) {
  expect_same_bits(job_with([](Json& j) {
                     at_stage(2, "fp32")(j);
                     j["model"] = {{"mlp", {8, 24, 8}}};
                     j["workload"]["sequence_length"] = 8;
                   }),
                   "perceptron");
}

/// A run that begins with the whole weights of a checkpoint has the loss of the step after it: all
/// steps read the same samples.
TEST_F(ValidateSaves, whole_weights_that_weights_reads) {
  const std::vector<std::pair<const char*, Change>> kinds{
      {"gpt2", no_change},
      {"gpt2 over tensor ranks", [](Json& j) { j["parallel"]["tensor"] = 2; }},
      {"gpt2 in stages", [](Json& j) { j["parallel"]["pipeline"] = 2; }},
      {"llama over tensor ranks",
       [](Json& j) {
         tiny_llama(j);
         j["parallel"]["tensor"] = 2;
       }},
      {"llama at stage 3",
       [](Json& j) {
         tiny_llama(j);
         j["framework"]["zero_stage"] = 3;
       }},
      {"experts",
       [](Json& j) {
         tiny_experts(j);
         j["framework"]["zero_stage"] = 2;
         j["parallel"]["expert"] = 2;
       }},
      {"experts in stages", [](Json& j) {
         tiny_experts(j);
         j["parallel"]["pipeline"] = 2;
       }}};
  for (const auto& [name, change] : kinds) {
    fs::remove_all(path("a"));
    const std::string job = job_with([&, &change = change](Json& j) {
      at_stage(1, "fp32")(j);
      change(j);
      j["run"]["steps"] = 3;
      j["run"].erase("scheduler");  // whose first rates are zero
      // As many tokens as a step has, and the last target.
      const Json parallel = j.value("parallel", Json::object());
      const int data = 2 / parallel.value("tensor", 1) / parallel.value("pipeline", 1);
      std::string text;
      for (int i = 0; i <= 2 * 16 * data; ++i) text += static_cast<char>('a' + i * i % 23);
      j["run"]["data"] = folder_.file("text", text);
    });
    const Json out = told(
        job, {"--save", path("a"), "--save-every", "2", "--save-form", "both", "--save-states"});
    ASSERT_TRUE(out.is_object()) << name;
    const Json again = told(job, {"--steps", "1", "--weights", path("a") + "/step-2/weights"});
    ASSERT_TRUE(again.is_object()) << name;
    EXPECT_EQ(steps_of(again).at(0).at("loss"), steps_of(out).at(2).at("loss")) << name;
    EXPECT_NE(steps_of(out).at(2).at("loss"), steps_of(out).at(0).at("loss")) << name;
    EXPECT_TRUE(fs::exists(path("a") + "/step-2/optimizer/states.safetensors"));
    EXPECT_THAT(refusal([&](Json& j) { j = read_json_file(job); }, {"--steps", "3"}),
                HasSubstr("more than 3"));
  }
}

TEST_F(ValidateSaves, adapters_that_weights_reads_beside_their_base) {
  const auto lora = [&](Json& j) {
    at_stage(3, "fp32")(j);
    tiny_llama(j);
    j["run"]["steps"] = 3;
    j["run"].erase("scheduler");
    j["run"]["data"] = folder_.file("text", std::string(2 * 16 * 2, 'a') + "b");
  };
  const auto with_adapters = [&](Json& j) {
    lora(j);
    j["workload"]["method"] = "lora";
    j["workload"]["lora"] = {{"rank", 4}, {"targets", {"q_proj", "down_proj"}}};
  };
  // The base, as it begins: a run whose rate is zero.
  told(job_with([&](Json& j) {
         lora(j);
         j["run"]["steps"] = 1;
         j["run"]["warmup"] = 0;
         j["optimizer"]["lr"] = 0;
       }),
       {"--save", path("base"), "--save-form", "whole"});
  const std::string base = path("base") + "/step-1/weights/model.safetensors";
  ASSERT_TRUE(fs::exists(base));
  EXPECT_FALSE(fs::exists(path("base") + "/step-1/rank-00000.safetensors"));
  const std::string job = job_with(with_adapters);
  const Json out = told(
      job, {"--weights", base, "--save", path("a"), "--save-every", "2", "--save-form", "whole"});
  fs::copy_file(base, path("a") + "/step-2/weights/model.safetensors");
  const Json again = told(job, {"--steps", "1", "--weights", path("a") + "/step-2/weights"});
  EXPECT_EQ(steps_of(again).at(0).at("loss"), steps_of(out).at(2).at("loss"));
  EXPECT_NE(steps_of(out).at(2).at("loss"), steps_of(out).at(0).at("loss"));
}

TEST_F(ValidateSaves, adapters_of_experts_that_weights_reads_beside_their_base) {
  const auto experts = [&](Json& j) {
    at_stage(3, "fp32")(j);
    tiny_experts(j);
    j["parallel"]["expert"] = 2;
    j["run"]["steps"] = 3;
    j["run"].erase("scheduler");
    j["run"]["data"] = folder_.file("text", std::string(2 * 16 * 2, 'a') + "b");
  };
  told(job_with([&](Json& j) {
         experts(j);
         j["run"]["steps"] = 1;
         j["run"]["warmup"] = 0;
         j["optimizer"]["lr"] = 0;
       }),
       {"--save", path("base"), "--save-form", "whole"});
  const std::string base = path("base") + "/step-1/weights/model.safetensors";
  const std::vector<Json> changes{
      {{"target_parameters", {"experts.gate_up_proj", "experts.down_proj"}}},
      {{"target_parameters", Json::array({"experts.down_proj"})}},
      {{"target_parameters", {"experts.down_proj", "experts.gate_up_proj"}},
       {"quantization", "nf4_double"},
       {"quantize_experts", true}}};
  for (const Json& change : changes) {
    fs::remove_all(path("a"));
    const Json& parameters = change.at("target_parameters");
    const std::string job = job_with([&](Json& j) {
      experts(j);
      j["workload"]["method"] = "lora";
      j["workload"]["lora"] = {{"rank", 4}, {"targets", Json::array()}};
      j["workload"]["lora"].update(change);
    });
    // The base is the one that a run without weights begins with.
    EXPECT_EQ(steps_of(told(job, {"--steps", "1", "--weights", base})),
              steps_of(told(job, {"--steps", "1"})));
    const Json out = told(
        job, {"--weights", base, "--save", path("a"), "--save-every", "2", "--save-form", "whole"});
    ASSERT_TRUE(out.is_object()) << parameters;
    fs::copy_file(base, path("a") + "/step-2/weights/model.safetensors");
    const Json again = told(job, {"--steps", "1", "--weights", path("a") + "/step-2/weights"});
    EXPECT_EQ(steps_of(again).at(0).at("loss"), steps_of(out).at(2).at("loss")) << parameters;
    EXPECT_NE(steps_of(out).at(2).at("loss"), steps_of(out).at(0).at("loss")) << parameters;
    const Json config = read_json_file(path("a") + "/step-2/weights/adapter_config.json");
    EXPECT_EQ(config.at("target_parameters"), parameters);
    EXPECT_EQ(config.at("target_modules"), Json::array());
  }
}

TEST_F(ValidateSaves, no_byte_of_the_device_more_than_between_steps) {
  const Json out = told(job_with(at_stage(2, "bf16-master")),
                        {"--save", path("a"), "--save-form", "both", "--save-states"});
  EXPECT_EQ(out.at("phases").at("save peak").at("measured"),
            out.at("phases").at("step end").at("measured"));
  for (const Json& rank : out.at("record").at("ranks")) {
    const Json& save = rank.at("save");
    for (const char* what : {"device_peak", "staging", "shard", "whole"})
      EXPECT_EQ(save.at(what), save.at("dry_run").at(what)) << what;
    EXPECT_GT(save.at("staging").get<std::int64_t>(), 0);
  }
  const Json& first = out.at("record").at("ranks").at(0).at("save");
  std::int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("a") + "/step-6"))
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  EXPECT_EQ(first.at("bytes").get<std::int64_t>(), bytes);
  EXPECT_GT(first.at("whole").get<std::int64_t>(), 0);
  const Finished dry = run({job_with(no_change), "--dry-run", "--save", path("c")});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("save peak"));
  EXPECT_FALSE(fs::exists(path("c")));
}

TEST_F(ValidateSaves, and_tells_a_program_and_people_of_each) {
  const std::string job = job_with(no_change);
  const Finished events =
      run({job, "--progress", "json", "--save", path("a"), "--save-every", "4"});
  EXPECT_THAT(events.out, AllOf(HasSubstr(R"("event":"saved","folder":")" + path("a") + "/step-4"),
                                HasSubstr(path("a") + "/step-6")));
  EXPECT_THAT(run({job, "--save", path("a")}).out, HasSubstr("saved " + path("a") + "/step-6 ("));
  // The checkpoint of that step was written anew, and the other one stayed.
  EXPECT_TRUE(fs::exists(path("a") + "/step-4/index.json"));
  EXPECT_EQ(std::distance(fs::directory_iterator(path("a")), fs::directory_iterator()), 2);
}

TEST_F(ValidateSaves, names_in_what_a_job_is_another_than_its_checkpoint) {
  save_half(job_with(no_change));
  const auto of = [&](const char* key, const char* found, const char* expected) {
    return AllOf(HasSubstr(path("a") + "/step-6/index.json"),
                 HasSubstr(std::string(key) + ": the job has " + found),
                 HasSubstr(std::string("expected ") + expected));
  };
  const std::vector<std::string> more{"--steps", "9"};
  EXPECT_THAT(refusal([](Json& j) { j["framework"]["zero_stage"] = 3; }, more),
              of("run.zero_stage", "3", "2"));
  EXPECT_THAT(refusal([](Json& j) { j["cluster"] = "4xA100-40GB"; }, more),
              of("run.ranks", "4", "2"));
  EXPECT_THAT(refusal([](Json& j) { j["model"]["n_layer"] = 3; }, more),
              of("run.model.layers", "3", "2"));
  EXPECT_THAT(refusal([](Json& j) { j["precision"] = "bf16-pure"; }, more),
              of("run.precision.master", "nothing", "\"fp32\""));
  EXPECT_THAT(refusal([](Json& j) { j["workload"]["micro_batch"] = 2; }, more),
              of("run.micro_batch", "2", "1"));
  EXPECT_THAT(refusal([](Json& j) { j["run"]["seed"] = 7; }, more), of("run.seed", "7", "0"));
  const std::string text = folder_.file("text", std::string(2000, 'a'));
  EXPECT_THAT(refusal([&](Json& j) { j["run"]["data"] = text; }, more),
              of("data.tokens", "2000", ""));
  // Rates and the number of steps may be others.
  EXPECT_EQ(
      run({job_with([](Json& j) { j["optimizer"]["lr"] = 1e-4; }), "--resume", path("a")}, more)
          .exit_code,
      0);
  EXPECT_THAT(refusal(no_change), AllOf(HasSubstr("run.steps: 6 steps"), HasSubstr("more than 6")));
}

TEST_F(ValidateSaves, names_what_it_does_not_save) {
  const auto refused = [&](const Change& change, const std::vector<std::string>& more) {
    const Finished r = run({job_with(change)}, more);
    EXPECT_EQ(r.exit_code, 3) << r.out;
    return r.err;
  };
  EXPECT_THAT(refused(no_change, {"--save-every", "2"}), HasSubstr("run.save.path"));
  EXPECT_THAT(refused(no_change, {"--save", path("a"), "--save-states"}),
              HasSubstr("run.save.whole_states"));
  EXPECT_THAT(refused(
                  [](Json& j) {
                    j["model"] = {{"mlp", {8, 8, 8}}};
                    j["workload"]["sequence_length"] = 8;
                  },
                  {"--save", path("a"), "--save-form", "whole"}),
              HasSubstr("run.save.form"));
  EXPECT_THAT(refused(no_change, {"--resume", path("none")}),
              AllOf(HasSubstr(path("none")), HasSubstr("run.resume")));
  EXPECT_FALSE(fs::exists(path("a")));
  run({job_with(no_change)}, {"--save", path("a"), "--save-form", "whole"});
  EXPECT_THAT(refusal(no_change, {"--steps", "9"}),
              AllOf(HasSubstr("whole weights alone"), HasSubstr("--weights")));
}

TEST_F(ValidateSaves, names_the_file_that_is_broken) {
  const std::vector<std::string> more{"--steps", "9"};
  const std::string shard = path("a") + "/step-6/rank-00001.safetensors";
  const std::string index = path("a") + "/step-6/index.json";
  const auto broken = [&](const std::function<void()>& act) {
    save_half(job_with(no_change));
    act();
    return refusal(no_change, more);
  };
  const auto edited = [&](const Change& change) {
    return broken([&] {
      Json json = read_json_file(index);
      change(json);
      std::ofstream(index) << json.dump();
    });
  };
  EXPECT_THAT(
      broken([&] { fs::resize_file(shard, fs::file_size(shard) - 1); }),
      AllOf(HasSubstr(shard), HasSubstr("shards[1].bytes"), HasSubstr("as it was written")));
  EXPECT_THAT(broken([&] { fs::remove(shard); }), AllOf(HasSubstr(shard), HasSubstr("is missing")));
  EXPECT_THAT(broken([&] {
                fs::copy_file(path("a") + "/step-6/rank-00000.safetensors", shard,
                              fs::copy_options::overwrite_existing);
                std::string text = text_of(shard);
                text.replace(text.find("head.master"), 4, "tail");
                std::ofstream(shard, std::ios::binary) << text;
              }),
              AllOf(HasSubstr(shard), HasSubstr("head.master: this tensor is missing")));
  EXPECT_THAT(broken([&] { fs::resize_file(index, 100); }), HasSubstr(index));
  EXPECT_THAT(edited([](Json& j) { j["shards"].erase(1); }),
              AllOf(HasSubstr("shards: 1 files for 2 ranks")));
  EXPECT_THAT(edited([](Json& j) { j.erase("step"); }), HasSubstr("step"));
  EXPECT_THAT(edited([](Json& j) { j["schema"] = "other/1"; }), HasSubstr("schema"));
  // Without an index step 6 is none: step 3 is the latest.
  save_half(job_with(no_change));
  fs::remove(index);
  const Finished r = run({job_with(no_change), "--resume", path("a")});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("step     4"), Not(HasSubstr("step     3"))));
}

TEST_F(ValidateSaves, disk_that_fills_leaves_the_checkpoint_before_and_nothing_half_written) {
  // A checkpoint has 1.6 MiB: a disk of 3 has room for one, one of 1 for none.
  const std::string script = folder_.file(
      "full.sh", "mount -t tmpfs -o size=$3 none $2 || exit 77\n" SHARDPLAN_VALIDATE
                 " $1 --save $2/a --save-every 2\n"
                 "code=$?; find $2 | sort; [ $3 = 1m ] && exit $code\n" SHARDPLAN_VALIDATE
                 " $1 --resume $2/a --steps 3 || exit 99\nexit $code\n");
  fs::create_directory(path("disk"));
  const auto on_disk = [&](const char* size) {
    return run_program("unshare", {"-rm", "sh", script, job_with(no_change), path("disk"), size});
  };
  const Finished r = on_disk("3m");
  if (r.exit_code == 77 || r.err.find("unshare") != std::string::npos)
    GTEST_SKIP() << "nothing can be mounted here: " << r.err;
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, AllOf(HasSubstr("too little room for a checkpoint"), HasSubstr("are free")));
  EXPECT_THAT(r.out, AllOf(HasSubstr("a/step-2/index.json"), HasSubstr("step     4"),
                           Not(HasSubstr("step-4")), Not(HasSubstr(".part-"))));
  const Finished none = on_disk("1m");
  EXPECT_EQ(none.exit_code, 5) << none.err;
  EXPECT_THAT(none.err, HasSubstr("too little room for a checkpoint"));
  EXPECT_THAT(none.out, AllOf(Not(HasSubstr("step  ")), Not(HasSubstr("step-"))));
}

TEST_F(ValidateSaves, limit_of_files_ends_all_ranks_and_leaves_nothing) {
  const std::string script =
      folder_.file("limit.sh", "ulimit -f 100\n" SHARDPLAN_VALIDATE " $1 --save $2\n");
  const Finished r = run_program("bash", {script, job_with(no_change), path("a")});
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_THAT(r.err, HasSubstr("ulimit -f"));
  EXPECT_TRUE(fs::is_empty(path("a")));
}

TEST_F(ValidateSaves, killed_save_is_no_checkpoint) {
  const std::string job = job_with([](Json& j) { j["run"]["steps"] = 1000000; });
  const std::string script = folder_.file(
      "kill.sh", SHARDPLAN_VALIDATE
      " $1 --save $2 --save-every 1 --quiet > /dev/null &\n"
      "until ls -d $2/.part-step-[4-9]* 2> $3.err; do :; done > $3\nkill -9 $!\nwait $!\nexit 0\n");
  run_program("bash", {script, job, path("a"), path("log")});
  std::int64_t last = 0;
  for (const auto& entry : fs::directory_iterator(path("a"))) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-")) continue;
    EXPECT_TRUE(fs::exists(entry.path() / "index.json")) << name;
    last = std::max<std::int64_t>(last, std::stol(name.substr(5)));
  }
  ASSERT_GE(last, 3);
  // A rest of an earlier run, whole but for its name.
  fs::copy(path("a") + "/step-3", path("a") + "/.part-step-999999", fs::copy_options::recursive);
  const Finished r =
      run({job, "--steps", std::to_string(last + 1), "--resume", path("a"), "--save", path("a")});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const auto& entry : fs::directory_iterator(path("a")))
    EXPECT_TRUE(entry.path().filename().string().starts_with("step-")) << entry.path();
}

TEST_F(ValidateSaves, as_one_process_a_rank) {
  const std::string script = folder_.file(
      "launch.sh",
      "export WORLD_SIZE=2 MASTER_PORT=$((20000 + $$ % 10000))\njob=$1; shift\n"
      "RANK=1 " SHARDPLAN_VALIDATE
      " $job --quiet \"$@\" &\n"
      "RANK=0 " SHARDPLAN_VALIDATE " $job --format json \"$@\"\ncode=$?; wait; exit $code\n");
  const std::string job = job_with(no_change);
  const Json all = save_half(job);
  const Finished r =
      run_program("bash", {script, job, "--resume", path("a") + "/step-3", "--save", path("b")});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(steps_of(Json::parse(r.out)).back(), all.back());
  EXPECT_EQ(text_of(path("a") + "/step-6/rank-00001.safetensors"),
            text_of(path("b") + "/step-6/rank-00001.safetensors"));
}

}  // namespace
}  // namespace shardplan::validator::checkpoint_test
