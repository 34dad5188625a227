#include "import/fsdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.h"

namespace shardplan::importing {
namespace {

/// torch.distributed.fsdp.ShardingStrategy, in the order of its numbers from 1 on.
constexpr std::array<std::string_view, 5> kStrategies{"full_shard", "shard_grad_op", "no_shard",
                                                      "hybrid_shard", "hybrid_shard_zero2"};
constexpr std::array<std::string_view, 22> kKnown{"version",
                                                  "sharding_strategy",
                                                  "reshard_after_forward",
                                                  "offload_params",
                                                  "cpu_offload",
                                                  "backward_prefetch",
                                                  "forward_prefetch",
                                                  "use_orig_params",
                                                  "limit_all_gathers",
                                                  "auto_wrap_policy",
                                                  "min_num_params",
                                                  "transformer_layer_cls_to_wrap",
                                                  "state_dict_type",
                                                  "sync_module_states",
                                                  "cpu_ram_efficient_loading",
                                                  "activation_checkpointing",
                                                  "activation_checkpointing_offload",
                                                  "xla",
                                                  "mixed_precision_policy",
                                                  "final_state_dict_type",
                                                  "ignored_modules",
                                                  "fp32_cpu_offload"};

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

class FsdpReader {
 public:
  FsdpReader(Key& key, const Json& block, std::string_view words, const FsdpDialect& dialect)
      : key_(key), block_(block), words_(words), dialect_(dialect) {}

  void read() {
    refuse_unknown();
    const std::int64_t version = version_of();
    if (flag("xla", false)) key_.refuse("XLA's FSDP is not estimated", "PyTorch's");
    check_wrapping(version);
    if (text("fp32_cpu_offload", "false") == "true") fail("fp32_cpu_offload", "is not estimated");
    Json framework = version == 1 ? one() : two();
    const bool offload = flag("offload_params", flag("cpu_offload", said("offload")));
    if (offload) framework["cpu_offload"] = true;
    if (text("state_dict_type", "").starts_with("full")) framework["state_dict_type"] = "full";
    if (flag("activation_checkpointing", false)) checkpoint();
    const Json* policy = find("mixed_precision_policy");
    if (policy != nullptr && !policy->is_null()) mixed_precision(*policy);
    const std::string name = framework["name"];
    key_.recipe().set("/framework", framework, key_.origin());
    key_.took("framework: " + framework.dump());
  }

 private:
  const Json* find(std::string_view name) const {
    for (const std::string_view prefix : {"fsdp_", ""}) {
      const auto found = block_.find(fmt::format("{}{}", prefix, name));
      if (found != block_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  bool said(std::string_view word) const {
    return lowered(std::string(words_)).find(word) != std::string::npos;
  }
  [[noreturn]] void fail(std::string_view name, std::string message, std::string expected = "") {
    key_.refuse(fmt::format("{}: {}", name, message), std::move(expected));
  }
  std::string text(std::string_view name, std::string_view otherwise) {
    const Json* value = find(name);
    if (value == nullptr) return lowered(std::string(otherwise));
    return lowered(value->is_string() ? value->get<std::string>() : value->dump());
  }
  bool flag(std::string_view name, bool otherwise) {
    const std::string word = text(name, otherwise ? "true" : "false");
    if (word == "true" || word == "1") return true;
    if (word != "false" && word != "0" && word != "none")
      fail(name, fmt::format("found '{}'", word), "true or false");
    return false;
  }

  /// accelerate warns of keys that it does not know and goes on without them.
  void refuse_unknown() {
    for (const auto& [spelt, value] : block_.items()) {
      const std::string name = spelt.starts_with("fsdp_") ? spelt.substr(5) : spelt;
      if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
      const auto near = std::find_if(kKnown.begin(), kKnown.end(), [&](std::string_view known) {
        return spelling_distance(known, name) <= 2;
      });
      if (near != kKnown.end())
        key_.refuse(fmt::format("unknown key '{}'", spelt), fmt::format("fsdp_{}", *near),
                    std::string(*near));
      key_.recipe().note({.kind = Note::Kind::unknown,
                          .file = key_.origin().file,
                          .line = key_.origin().line,
                          .key = fmt::format("{}.{}", key_.path(), spelt)});
    }
  }

  std::int64_t version_of() {
    const Json* beside = key_.other("fsdp_version");
    const std::string word =
        beside != nullptr && !beside->is_null()
            ? (beside->is_string() ? beside->get<std::string>() : beside->dump())
            : text("version", std::to_string(dialect_.version));
    const bool silent = beside == nullptr && find("version") == nullptr;
    if (silent)
      key_.recipe().note({.kind = Note::Kind::assumed,
                          .field = "FSDP" + word,
                          .reason = "what the program takes without fsdp_version"});
    if (word != "1" && word != "2") fail("fsdp_version", fmt::format("found {}", word), "1 or 2");
    return word == "1" ? 1 : 2;
  }

  /// Blocks are the units that are estimated, or under FSDP2 the whole network.
  void check_wrapping(std::int64_t version) {
    const std::string policy = text("auto_wrap_policy", dialect_.auto_wrap_policy);
    const bool wraps = policy == "transformer_based_wrap" ||
                       find("transformer_layer_cls_to_wrap") != nullptr ||
                       (policy == "no_wrap" && said("auto_wrap"));
    if (wraps) return;
    whole_ = policy == "no_wrap" && version == 2;
    if (whole_) return;
    if (policy == "no_wrap")
      fail("fsdp_auto_wrap_policy",
           "without one FSDP1 makes the whole model one flat parameter, which is not estimated",
           "TRANSFORMER_BASED_WRAP, or fsdp_version 2");
    fail("fsdp_auto_wrap_policy", fmt::format("units by '{}' are not estimated", policy),
         "TRANSFORMER_BASED_WRAP");
  }

  std::string strategy() {
    std::string word = text("sharding_strategy", "");
    if (word.empty()) {
      word = text("reshard_after_forward", "");
      if (word == "true" || word == "false" || word.empty()) word = "full_shard";
      for (const std::string_view known : kStrategies)
        if (said(known)) word = known;
    }
    if (word.size() == 1 && word[0] >= '1' && word[0] <= '5')
      word = kStrategies[static_cast<std::size_t>(word[0] - '1')];
    if (std::find(kStrategies.begin(), kStrategies.end(), word) == kStrategies.end())
      fail("fsdp_sharding_strategy", fmt::format("found '{}'", word),
           fmt::format("one of {}", fmt::join(kStrategies, ", ")));
    return word;
  }

  Json one() {
    const std::string name = strategy();
    if (name == "hybrid_shard_zero2")
      fail("fsdp_sharding_strategy", "HYBRID_SHARD_ZERO2 is not estimated", "HYBRID_SHARD");
    Json framework{{"name", "fsdp1"}, {"sharding_strategy", name}};
    framework["use_orig_params"] = text("use_orig_params", dialect_.use_orig_params) == "true";
    const std::string prefetch = text("backward_prefetch", dialect_.backward_prefetch);
    framework["backward_prefetch"] = prefetch == "backward_pre" || prefetch == "1"    ? "pre"
                                     : prefetch == "backward_post" || prefetch == "2" ? "post"
                                                                                      : "none";
    if (flag("forward_prefetch", false)) framework["forward_prefetch"] = true;
    if (!flag("limit_all_gathers", true)) framework["limit_all_gathers"] = false;
    return framework;
  }

  /// FSDP1's names of strategies are taken for what they mean: accelerate refuses them, axolotl
  /// and transformers translate them.
  Json two() {
    Json framework{{"name", "fsdp2"}};
    std::string word = text("reshard_after_forward", "");
    if (word.empty()) word = said("shard_grad_op") ? "false" : "true";
    if (word == "shard_grad_op") word = "false";
    if (word == "full_shard") word = "true";
    if (word != "true" && word != "false")
      fail("fsdp_reshard_after_forward", fmt::format("found '{}'", word), "true or false");
    framework["reshard_after_forward"] = word == "true";
    if (whole_) framework["units"] = "whole";
    const bool hybrid = text("sharding_strategy", "").starts_with("hybrid") || said("hybrid_shard");
    if (hybrid)
      fail("fsdp_sharding_strategy", "FSDP2 has no HYBRID_SHARD",
           "framework.hybrid_shard_size in a job, or fsdp_version 1");
    return framework;
  }

  void checkpoint() {
    const bool offload = flag("activation_checkpointing_offload", false);
    Json how = offload ? Json{{"policy", "full"}, {"offload", true}} : Json("full");
    key_.recipe().set("/checkpointing", std::move(how), key_.origin());
  }

  void mixed_precision(const Json& policy) {
    if (policy == "no" || policy == "bf16" || policy == "fp16") return;
    fail("mixed_precision_policy", "policies of one's own are not read from such a file",
         "bf16 or fp16");
  }

  Key& key_;
  const Json& block_;
  std::string_view words_;
  const FsdpDialect& dialect_;
  bool whole_ = false;  ///< no policy wraps blocks
};

}  // namespace

void read_fsdp_block(Key& key, const Json& block, std::string_view words,
                     const FsdpDialect& dialect) {
  static const Json kNothing = Json::object();
  if (!block.is_object() && !block.is_null()) key.refuse("is no mapping", "FSDP's options by name");
  FsdpReader(key, block.is_null() ? kNothing : block, words, dialect).read();
}

}  // namespace shardplan::importing
