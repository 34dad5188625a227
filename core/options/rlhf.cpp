// Workloads of several models. Their own keys follow from each other, and load/rlhf.h reads them.
#include <array>

#include "options/choices.h"
#include "options/limits.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr NamedValue named(const AlgorithmDescription& a) {
  return {a.name, static_cast<std::int64_t>(a.algorithm), a.label, ""};
}
constexpr auto kAlgorithms = [] {
  std::array<NamedValue, kAlgorithmDescriptions.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = named(kAlgorithmDescriptions[i]);
  return all;
}();

constexpr std::array kReferences{
    NamedValue{"copy", static_cast<std::int64_t>(ReferenceModel::copy), "a model of its own", ""},
    NamedValue{"base", static_cast<std::int64_t>(ReferenceModel::base),
               "the trained model, adapters off", ""},
    NamedValue{"precomputed", static_cast<std::int64_t>(ReferenceModel::precomputed),
               "scores made before training", ""},
    NamedValue{"none", static_cast<std::int64_t>(ReferenceModel::none), "none", ""}};

constexpr std::array kRewards{
    NamedValue{"model", static_cast<std::int64_t>(true), "a model's", ""},
    NamedValue{"function", static_cast<std::int64_t>(false), "a function's", ""}};

constexpr std::array kEntropies{
    NamedValue{"none", static_cast<std::int64_t>(EntropyKind::none), "none", ""},
    NamedValue{"compiled", static_cast<std::int64_t>(EntropyKind::compiled), "in one kernel", ""},
    NamedValue{"eager", static_cast<std::int64_t>(EntropyKind::eager), "by PyTorch's operations",
               ""}};

constexpr Option<Rlhf> count(std::string_view key, std::string_view help, std::string_view fallback,
                             bool required = false) {
  return special<Rlhf>({.key = key,
                        .help = help,
                        .default_text = fallback,
                        .kind = OptionKind::integer,
                        .integers = {1, kLargestCount},
                        .required = required});
}

constexpr std::array kRlhfOptions{
    special<Rlhf>({.key = "algorithm",
                   .help = "how the models are trained",
                   .label = "Algorithm",
                   .kind = OptionKind::choice,
                   .choices = kAlgorithms,
                   .required = true}),
    count("micro_batch", "samples a GPU takes at once; pairs for dpo, orpo, cpo and reward", "1"),
    count("gradient_accumulation", "micro-batches per step", "1"),
    count("sequence_length", "where nothing is generated: tokens of a sequence", "", true),
    count("prompt_length",
          "tokens of a prompt; required where something is generated, else how many of a sequence "
          "are its prompt, whose log-probabilities TRL leaves out",
          "none"),
    count("new_tokens", "tokens to generate for each prompt", "", true),
    count("generation_batch", "sequences generated and scored at once",
          "`micro_batch` × `gradient_accumulation`"),
    count("token_budget",
          "tokens of a micro-batch at most, of samples without padding, in place of `micro_batch`",
          "none"),
    count("scoring_batch", "samples a GPU scores at once", "as many as its trainer does"),
    count("scoring_tokens", "tokens that are scored at once at most, of samples without padding",
          "none"),
    special<Rlhf>({.key = "entropy",
                   .help = "how the entropy of the tokens is made where the loss has it",
                   .default_text = "`none`",
                   .kind = OptionKind::choice,
                   .choices = kEntropies}),
    special<Rlhf>({.key = "scoring_entropy",
                   .help = "the same where the actor's own answers are scored",
                   .default_text = "as `entropy`",
                   .kind = OptionKind::choice,
                   .choices = kEntropies}),
    special<Rlhf>({.key = "rewards",
                   .help = "ppo: whose they are",
                   .default_text = "`model`",
                   .kind = OptionKind::choice,
                   .choices = kRewards}),
    special<Rlhf>(
        {.key = "method", .help = "as for training, of the actor", .default_text = "`full`"}),
    special<Rlhf>(
        {.key = "lora", .help = "as for training, of the actor", .kind = OptionKind::block}),
    special<Rlhf>({.key = "images",
                   .help = "as for training; not where something is generated",
                   .default_text = "1 where the network reads images",
                   .kind = OptionKind::integer}),
    special<Rlhf>({.key = "image_tokens",
                   .help = "as for training",
                   .default_text = "the most that the network's processor makes",
                   .kind = OptionKind::integer}),
    special<Rlhf>({.key = "frozen",
                   .help = "as for training, of the actor",
                   .default_text = "nothing",
                   .kind = OptionKind::choice,
                   .choices = kFrozenParts}),
    special<Rlhf>({.key = "reference",
                   .help = "what the reference's scores come from",
                   .default_text = "`copy`; `base` with LoRA under `trainer` trl",
                   .kind = OptionKind::choice,
                   .choices = kReferences}),
    special<Rlhf>({.key = "models",
                   .help = "an object for each model that differs from the job",
                   .default_text = "all as the job",
                   .kind = OptionKind::block}),
    special<Rlhf>({.key = "hybrid_engine",
                   .help = "DeepSpeed's block of that name",
                   .default_text = "off",
                   .kind = OptionKind::block}),
    special<Rlhf>({.key = "rollout",
                   .help = "an engine that generates beside the trainer, as below",
                   .default_text = "the actor's own model",
                   .kind = OptionKind::block}),
};

constexpr std::array kHybrid{
    special<HybridEngine>({.key = "enabled",
                           .help = "false: as without the block",
                           .default_text = "true",
                           .kind = OptionKind::boolean}),
    option<&HybridEngine::max_out_tokens>(
        {.key = "max_out_tokens",
         .help = "tokens that its workspace is for, prompt included",
         .integers = {1, kLargestCount}}),
    option<&HybridEngine::inference_tp_size>({.key = "inference_tp_size",
                                              .help = "GPUs that share each layer when generating",
                                              .integers = {1, 1 << 20}}),
    option<&HybridEngine::release_inference_cache>(
        {.key = "release_inference_cache", .help = "free the workspace after each generation"}),
    option<&HybridEngine::pin_parameters>(
        {.key = "pin_parameters", .help = "keep gathered parameters while generating"}),
    option<&HybridEngine::tp_gather_partition_size>({.key = "tp_gather_partition_size",
                                                     .help = "layers gathered at once",
                                                     .integers = {1, 1 << 20}}),
};

}  // namespace

const OptionTable<Rlhf>& rlhf_table() {
  static constexpr OptionTable<Rlhf> kTable{"workload", "rlhf", kRlhfOptions};
  return kTable;
}

const OptionTable<HybridEngine>& hybrid_table() {
  static constexpr OptionTable<HybridEngine> kTable{"workload.hybrid_engine", "rlhf", kHybrid};
  return kTable;
}

}  // namespace shardplan
