// Costs, repairs and formats of the linter, on examples that are wrong in one way.
#include "lint_testing.h"
#include "render/lint_data.h"
#include "render/lint_text.h"
#include "render/rules_text.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kZero3 = R"({
  "train_micro_batch_size_per_gpu": 1,
  "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu"},
    "reduce_bucket_size": 500000000
  }
})";

const KeyCost* cost_of(const LintReport& report, std::string_view path) {
  for (const KeyCost& cost : report.costs)
    if (cost.path == path) return &cost;
  return nullptr;
}

Json machine(const char* model, const char* gpus) {
  return {{"model", model}, {"gpus", gpus}};
}

TEST(LintCosts, AreDifferencesOfTwoEstimates) {
  const LintReport report = lint_text_of(kZero3, machine("llama-2-7b", "8xH100"));
  ASSERT_TRUE(report.now.has_value()) << report.not_priced.text;
  const KeyCost* offload = cost_of(report, "zero_optimization.offload_optimizer");
  ASSERT_NE(offload, nullptr);
  ASSERT_TRUE(offload->costs.has_value());
  // 12 bytes a parameter leave each GPU for its host: 6.74e9 * 12 / 8.
  constexpr std::int64_t kStates = 6'738'415'616 * 12 / 8;
  EXPECT_LT(offload->costs->gpu, -kStates * 9 / 10);
  EXPECT_GT(offload->costs->host, 8 * kStates * 9 / 10);
  EXPECT_GT(offload->costs->pace, 1.1);

  const Json without = parse_json(R"({"train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": true},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": 500000000}})",
                                  "ds.json");
  const LintReport other = lint_text_of(without.dump(), machine("llama-2-7b", "8xH100"));
  EXPECT_EQ(offload->costs->gpu, report.now->price.gpu - other.now->price.gpu);
  EXPECT_EQ(offload->costs->host, report.now->price.host - other.now->price.host);
}

TEST(LintCosts, KnowAValueThatNeedsLess) {
  const LintReport report = lint_text_of(kZero3, machine("llama-2-7b", "8xH100"));
  const KeyCost* bucket = cost_of(report, "zero_optimization.reduce_bucket_size");
  ASSERT_NE(bucket, nullptr);
  ASSERT_TRUE(bucket->better.has_value());
  EXPECT_EQ(bucket->better->value, 4096 * 4096);
  EXPECT_LT(bucket->better->change.gpu, -500'000'000);
  EXPECT_EQ(value_at(report.fixed, "zero_optimization.reduce_bucket_size")->get<std::int64_t>(),
            4096 * 4096);
  const LintReport after = lint_text_of(report.fixed.dump(), machine("llama-2-7b", "8xH100"));
  EXPECT_LT(after.now->price.gpu, report.now->price.gpu);
  EXPECT_FALSE(cost_of(after, "zero_optimization.reduce_bucket_size")->better.has_value());
}

TEST(LintCosts, AreNotGuessedWithoutAMachineOrWithErrors) {
  EXPECT_THAT(lint_text_of(kZero3).not_priced.text, HasSubstr("--gpus"));
  Json broken = parse_json(kZero3, "ds.json");
  broken["zero_optimization"]["stage"] = 4;
  const LintReport report = lint_text_of(broken.dump(), machine("llama-2-7b", "8xH100"));
  EXPECT_FALSE(report.now.has_value());
  EXPECT_THAT(report.not_priced.text, HasSubstr("errors"));
}

TEST(LintFix, KeepsTheOrderOfKeys) {
  const LintReport report = lint_text_of(R"({"zero_optimization": {"overlap_com": true, "stage": 2},
    "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
    "train_micro_batch_size_per_gpu": 1})");
  EXPECT_EQ(report.fixed.dump(), R"({"zero_optimization":{"overlap_comm":true,"stage":2},)"
                                 R"("gradient_accumulation_steps":2,"bf16":{"enabled":true},)"
                                 R"("train_micro_batch_size_per_gpu":1})");
  EXPECT_THAT(rules_of(lint_text_of(report.fixed.dump()), Severity::warning), IsEmpty());
}

/// A key that DeepSpeed ignores may be another program's, or a comment.
TEST(LintFix, NeverTouchesWhatDeepSpeedIgnores) {
  const std::string text =
      R"({"comment":{"enabled":true},"pipe-parallel-size":2,"_comment":"mine",)"
      R"("gradient_acumulation_steps":2,"optimizer":{"type":"AdamW","params":{"lrr":0.1}},)"
      R"("tensor_parallel":{"autotp_size":0},"mp_size":4,"train_micro_batch_size_per_gpu":1,)"
      R"("bf16":{"enabled":true},"zero_optimization":{"stage":2}})";
  const LintReport report = lint_text_of(text);
  EXPECT_EQ(report.count(Severity::error), 0);
  EXPECT_EQ(report.fixed.dump(), text);
}

/// The number of errors never grows; where it would, nothing is given.
TEST(LintFix, IsCheckedAgain) {
  LintRequest request;
  request.config = SourceText{"ds.json", R"({"train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 2}})"};
  request = complete(std::move(request));
  LintReport first = lint(request);
  first.fixed["zero_optimization"]["stage"] = 4;  // a repair gone wrong
  EXPECT_THROW(repaired(request, first), InputError);
}

TEST(LintFix, LeavesAValidFileAsItIs) {
  const LintReport report = lint_text_of(kZero3);
  EXPECT_EQ(report.fixed, parse_json(kZero3, "ds.json"));
}

TEST(LintPositions, AreThoseOfTheKeyInItsOwnFile) {
  LintRequest request;
  request.config = SourceText{"ds.json",
                              "{\n  \"train_micro_batch_size_per_gpu\": \"auto\",\n"
                              "  \"gradient_accumulation_steps\": 4,\n"
                              "  \"zero_optimization\": {\n    \"stag\": 2\n  }\n}\n"};
  request.arguments = SourceText{"args.json", "{\n  \"bf16\": true,\n  \"learning_rat\": 1\n}\n"};
  const LintReport report = lint_with(std::move(request));
  std::vector<std::string> places;
  for (const LintFinding& f : report.findings)
    if (f.rule->severity != Severity::note)
      places.push_back(f.diagnostic.file + ":" + std::to_string(f.diagnostic.position.line) + ":" +
                       std::to_string(f.diagnostic.position.column) + " " +
                       std::string(f.rule->id.text()));
  EXPECT_THAT(places,
              ::testing::ElementsAre("ds.json:3:3 hf.batch-mismatch", "ds.json:5:5 ds.unknown-key",
                                     "args.json:3:3 hf.misspelt-argument"));
}

TEST(LintCheckpointing, SaysThatTheBlockReachesNoModelOfHuggingFace) {
  const char* const config = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
    "zero_optimization": {"stage": 2}, "activation_checkpointing": {"partition_activations": true}})";
  EXPECT_THAT(rules_of(lint_text_of(config), Severity::warning), IsEmpty());
  EXPECT_THAT(rules_of(lint_text_of(config, machine("llama-2-7b", "8xH100")), Severity::warning),
              Contains("hf.checkpointing-block"));
}

TEST(LintAuto, IsResolvedWithTheTrainersArguments) {
  LintRequest request;
  request.config = SourceText{"ds.json", R"({"train_micro_batch_size_per_gpu": "auto",
    "train_batch_size": "auto", "gradient_accumulation_steps": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}})"};
  request.arguments = SourceText{"args.json", R"({"per_device_train_batch_size": 4, "bf16": true,
    "gradient_accumulation_steps": 2, "learning_rate": 2e-5, "gradient_checkpointing": true})"};
  request.job = job_of(machine("llama-2-7b", "8xH100"));
  const LintReport report = lint_with(std::move(request));
  EXPECT_THAT(rules_of(report, Severity::error), IsEmpty());
  Json resolved = Json::object();
  for (const ResolvedAuto& one : report.autos) resolved[one.path] = one.value;
  EXPECT_EQ(resolved["train_batch_size"], 64);
  EXPECT_EQ(resolved["optimizer.params.lr"], 2e-5);
  EXPECT_EQ(resolved["bf16.enabled"], true);
  EXPECT_EQ(resolved["zero_optimization.reduce_bucket_size"], 4096 * 4096);
  ASSERT_TRUE(report.now.has_value()) << report.not_priced.text;
}

TEST(LintAccelerate, MakesTheDsConfigWhenItNamesNone) {
  LintRequest request;
  request.accelerate = SourceText{"a.yaml",
                                  "distributed_type: DEEPSPEED\nnum_processes: 8\n"
                                  "mixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 2\n"
                                  "  offload_param_device: cpu\n"};
  const LintReport report = lint_with(std::move(request));
  EXPECT_EQ(report.resolver, AutoResolver::accelerate);
  EXPECT_THAT(rules_of(report, Severity::warning), ::testing::ElementsAre("ds.no-effect-at-stage"));
}

TEST(LintSarif, DescribesRulesAndPlaces) {
  const LintReport report = lint_text_of(
      "{\n  \"train_micro_batch_size_per_gpu\": 1,\n"
      "  \"zero_optimization\": {\"stag\": 2}\n}\n");
  const Json sarif = lint_sarif(report, "1.2.3");
  EXPECT_EQ(sarif["version"], "2.1.0");
  const Json& run = sarif["runs"][0];
  const Json& rules = run["tool"]["driver"]["rules"];
  EXPECT_EQ(run["tool"]["driver"]["version"], "1.2.3");
  bool found = false;
  for (const Json& result : run["results"]) {
    const Json& rule = rules[result["ruleIndex"].get<std::size_t>()];
    EXPECT_EQ(rule["id"], result["ruleId"]);
    EXPECT_EQ(rule["defaultConfiguration"]["level"], result["level"]);
    const Json& place = result["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"]["uri"], "ds.json");
    EXPECT_GE(place["region"]["startLine"], 1);
    if (result["ruleId"] != "ds.unknown-key") continue;
    found = true;
    EXPECT_EQ(place["region"]["startLine"], 3);
    EXPECT_EQ(place["region"]["startColumn"], 25);
    EXPECT_THAT(result["message"]["text"].get<std::string>(), HasSubstr("did you mean 'stage'"));
  }
  EXPECT_TRUE(found);
}

TEST(LintText, NamesPlaceSeverityRuleAndRepair) {
  const std::string text =
      lint_text(lint_text_of("{\n  \"train_micro_batch_size_per_gpu\": 1,\n"
                             "  \"zero_optimization\": {\"stag\": 2}\n}\n"));
  EXPECT_THAT(text, HasSubstr("ds.json:3:25: error: zero_optimization.stag: unknown key"));
  EXPECT_THAT(text, HasSubstr("[ds.unknown-key]"));
  EXPECT_THAT(text, HasSubstr("--fix: zero_optimization.stag renamed to zero_optimization.stage"));
  EXPECT_THAT(text, HasSubstr("1 error, 0 warnings"));
}

TEST(LintDocument, ListsEveryRuleAsTheTableHasIt) {
  const std::string page =
      read_text_file(std::string(SHARDPLAN_SOURCE_DIR) + "/docs/reference/lint.md");
  EXPECT_THAT(page, HasSubstr(rules_markdown())) << "write it again: tools/make_lint_doc.sh";
}

/// A misspelt key that is deprecated is renamed first; then it can be moved.
TEST(LintRepairs, GoOnUntilNothingMoreChanges) {
  const std::string text = R"({"bf16": {"enabled": true},
    "zero_optimization": {"stage": 3, "cpu_ofload": true}})";
  LintRequest request;
  request.config = SourceText{"ds.json", text};
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  request.hardware = &hardware;
  request.calibration = &calibration;
  const LintReport first = lint(request);
  EXPECT_TRUE(first.fixed["zero_optimization"].contains("cpu_offload"));
  const Json fixed = repaired(request, first);
  EXPECT_FALSE(fixed["zero_optimization"].contains("cpu_offload")) << fixed.dump();
  EXPECT_EQ(fixed["zero_optimization"]["offload_optimizer"]["device"], "cpu") << fixed.dump();
}

/// What is said about a companion file.
std::vector<std::string> texts_about(const LintReport& report, const std::string& file) {
  std::vector<std::string> texts;
  for (const LintFinding& finding : report.findings) {
    Diagnostic d = finding.diagnostic;
    d.position = {};
    if (d.file == file) texts.push_back(to_string(d));
  }
  return texts;
}

TEST(LintCompanions, UnknownKeysOfAccelerateHaveTheirNearest) {
  LintRequest request;
  request.accelerate = SourceText{
      "a.yaml",
      "distributed_type: DEEPSPEED\nnum_proceses: 8\ndeepspeed_config:\n  zero_stag: 2\n"};
  EXPECT_THAT(texts_about(lint_with(std::move(request)), "a.yaml"),
              ElementsAre(HasSubstr("did you mean 'num_processes'"),
                          HasSubstr("deepspeed_config.zero_stag: unknown key, which accelerate "
                                    "ignores; did you mean 'zero_stage'")));
}

TEST(LintKeys, OfPeoplesOwnAreNotTakenForMisspelledOnes) {
  LintRequest request;
  request.config = SourceText{
      "ds.json",
      R"({"train_micro_batch_size_per_gpu": 1, "comment": "mine", "pipe-parallel-size": 2,
          "gradient_cliping": 1.0, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})"};
  std::vector<std::string> texts = texts_about(lint_with(std::move(request)), "ds.json");
  std::erase_if(
      texts, [](const std::string& text) { return text.find("unknown key") == std::string::npos; });
  EXPECT_THAT(texts, ElementsAre(Not(HasSubstr("did you mean")), Not(HasSubstr("did you mean")),
                                 HasSubstr("did you mean 'gradient_clipping'")));
}

TEST(LintCompanions, OnlyNamesNearToAnArgumentAreMistakes) {
  LintRequest request;
  request.config = SourceText{"ds.json", kZero3};
  request.arguments =
      SourceText{"t.json", R"({"learning_rat": 1e-5, "model_name_or_path": "x", "dataset": "y"})"};
  EXPECT_THAT(texts_about(lint_with(std::move(request)), "t.json"),
              ElementsAre(HasSubstr("did you mean 'learning_rate'")));
}

TEST(LintCompanions, AreCheckedEvenBesideAFileThatCannotBeRead) {
  LintRequest request;
  request.config = SourceText{"ds.json", "{"};
  request.accelerate = SourceText{"a.yaml", "num_processes: eight\ndistributed_type: DEEPSPEED\n"};
  const LintReport report = lint_with(std::move(request));
  EXPECT_THAT(rules_of(report, Severity::error),
              ElementsAre("json.syntax", "accelerate.wrong-type"));
}

}  // namespace
}  // namespace shardplan
