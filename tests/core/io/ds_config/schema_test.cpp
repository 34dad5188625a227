#include <set>

#include "ds_config_testing.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/version.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(DsSchema, HoldsEveryKeyOnceWithATypeAndADefaultOfThatType) {
  const DsSchema& schema = ds_schema();
  // 457 keys of the reference (7 of them of init_inference) and those found in the source since.
  EXPECT_EQ(schema.inference_keys().size(), 7);
  EXPECT_GE(schema.paths().size(), 450);
  std::set<std::string> seen;
  for (const std::string& path : schema.paths()) {
    EXPECT_TRUE(seen.insert(path).second) << path;
    const DsNode* key = schema.find(path);
    ASSERT_NE(key, nullptr) << path;
    EXPECT_EQ(key->path, path);
    EXPECT_FALSE(key->types.empty()) << path;
    EXPECT_FALSE(key->source.empty()) << path;
    const Json& value = key->fallback;
    EXPECT_TRUE(!value.is_boolean() || key->takes(DsType::boolean)) << path;
    EXPECT_TRUE(!value.is_number_float() || key->takes(DsType::number)) << path;
    EXPECT_TRUE(!value.is_array() || key->takes(DsType::list)) << path;
  }
}

TEST(DsSchema, ItsReferencesAndVersionsAreConsistent) {
  const DsSchema& schema = ds_schema();
  for (const std::string& path : schema.paths()) {
    const DsNode* key = schema.find(path);
    EXPECT_TRUE(key->alias_of.empty() || schema.find(key->alias_of) != nullptr) << path;
    EXPECT_TRUE(!key->deprecated || schema.find(key->deprecated->replacement) != nullptr) << path;
    if (!key->changes.empty()) {
      EXPECT_EQ(key->default_at(DeepSpeedVersion{}), key->fallback) << path;
    }
  }
}

/// A document that holds `path` with `value`; "*" becomes a name of its own.
std::string document_with(const std::string& path, const Json& value) {
  Json document = Json::object();
  Json* at = &document;
  std::size_t start = 0;
  while (true) {
    const std::size_t dot = path.find('.', start);
    std::string name = path.substr(start, dot == std::string::npos ? dot : dot - start);
    if (name == "*") name = "any_group";
    at = &(*at)[name];
    if (dot == std::string::npos) break;
    start = dot + 1;
  }
  *at = value;
  return document.dump();
}

TEST(DsSchema, TheCheckerKnowsEveryKeyOfItAndNoMisspelling) {
  for (const std::string& path : ds_schema().paths()) {
    const DsNode* key = ds_schema().find(path);
    DsConfigContext context = on_ranks(8);
    if (key->until)  // a key of the past: ask the version before it went
      context.version = key->since.value_or(DeepSpeedVersion{0, 10, 0});
    if (path == "train_batch_size" || path == "train_micro_batch_size_per_gpu") continue;
    const std::string known = document_with(path, key->fallback);
    const auto result = checked(known, context);
    for (const Diagnostic& d : result.diagnostics) {
      EXPECT_THAT(d.message, Not(HasSubstr("unknown key"))) << known;
      EXPECT_THAT(d.message, Not(HasSubstr("does not know"))) << known;
    }
    const DsNode* block = ds_schema().find(path.substr(0, path.rfind('.')));
    if (path.find('.') != std::string::npos && block->unknown == DsUnknown::open) continue;
    const std::string unknown = document_with(path + "_x_y_z_w_v_u", key->fallback);
    const auto strange = checked(unknown, context);
    EXPECT_THAT(strange.diagnostics,
                Contains(::testing::Field(
                    &Diagnostic::message,
                    ::testing::AnyOf(HasSubstr("unknown key"), HasSubstr("not a known argument")))))
        << unknown;
  }
}

TEST(DsSchema, InferenceKeysAreSaidToBelongElsewhere) {
  EXPECT_THAT(warnings_of(R"({"replace_with_kernel_inject": true})"),
              Contains("ds.json: replace_with_kernel_inject: a key of "
                       "deepspeed.init_inference(), which training ignores"));
}

TEST(DeepSpeedVersion, IsReadWithPrefixAndSuffix) {
  EXPECT_EQ(parse_deepspeed_version("0.16.4"), (DeepSpeedVersion{0, 16, 4}));
  EXPECT_EQ(parse_deepspeed_version("v0.16"), (DeepSpeedVersion{0, 16, 0}));
  EXPECT_EQ(parse_deepspeed_version("0.19.5+cu128"), (DeepSpeedVersion{0, 19, 5}));
  EXPECT_EQ(parse_deepspeed_version("latest"), std::nullopt);
  EXPECT_EQ(parse_deepspeed_version("1"), std::nullopt);
}

DsConfigContext at_version(int minor, int patch) {
  DsConfigContext context = on_ranks(8);
  context.version = {0, minor, patch};
  return context;
}

TEST(DsVersions, DefaultsAreThoseOfTheVersion) {
  const std::string text = R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}})";
  const DeepSpeedOptions old = options_of(text, at_version(16, 0));
  EXPECT_EQ(old.gradient_clipping, 0.0);
  EXPECT_FALSE(old.zero.offload_optimizer.pin_memory);
  EXPECT_FALSE(old.zero.offload_param.pin_memory);
  EXPECT_FALSE(old.check_grad_overflow);
  const DeepSpeedOptions now = options_of(text, at_version(19, 6));
  EXPECT_EQ(now.gradient_clipping, 1.0);
  EXPECT_TRUE(now.zero.offload_optimizer.pin_memory);
  EXPECT_TRUE(now.zero.offload_param.pin_memory);
  EXPECT_TRUE(now.check_grad_overflow);
  EXPECT_EQ(options_of(text, at_version(19, 2)).gradient_clipping, 0.0);
  EXPECT_EQ(options_of(text, at_version(19, 3)).gradient_clipping, 1.0);
  EXPECT_FALSE(options_of(text, at_version(19, 4)).zero.offload_param.pin_memory);
  EXPECT_TRUE(options_of(text, at_version(19, 5)).zero.offload_param.pin_memory);
  EXPECT_EQ(options_of("{}").version, (DeepSpeedVersion{0, 19, 6}));
}

TEST(DsVersions, AKeyBeforeItsTimeIsRefusedInTypedBlocksAndIgnoredElsewhere) {
  const std::string key = R"({"zero_optimization": {"stage3_allgather_sequential": true}})";
  EXPECT_THAT(errors_of(key, at_version(18, 4)),
              Contains("ds.json: zero_optimization.stage3_allgather_sequential: DeepSpeed 0.18.4 "
                       "does not know this key, which came with 0.18.5, and refuses it"));
  EXPECT_THAT(errors_of(key, at_version(18, 5)), IsEmpty());
  const std::string top = R"({"log_level": "info"})";
  EXPECT_THAT(warnings_of(top, at_version(19, 2)), Contains(HasSubstr("and ignores it")));
  EXPECT_THAT(warnings_of(top, at_version(19, 3)), IsEmpty());
}

TEST(DsVersions, TheSequenceParallelTypeHadAnotherNameBefore) {
  const std::string old = R"({"sequence_parallel_size": 2, "seq_parallel_comm_data_type": "bf16"})";
  EXPECT_EQ(options_of(old, at_version(16, 4)).communication_dtype, DType::bf16);
  EXPECT_EQ(options_of(old, at_version(16, 5)).communication_dtype, DType::f32);
  EXPECT_THAT(warnings_of(old, at_version(16, 5)), Contains(HasSubstr("no longer knows")));
}

TEST(DsVersions, PrecisionBlocksBecameTypedIn0171) {
  const std::string text = R"({"bf16": {"enabled": true, "loss_scal": 1}})";
  EXPECT_THAT(errors_of(text, at_version(17, 0)), IsEmpty());
  EXPECT_THAT(errors_of(text, at_version(17, 1)), Contains(HasSubstr("bf16.loss_scal")));
}

}  // namespace
}  // namespace shardplan
