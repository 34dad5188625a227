#include "load/ds_config/auto_values.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "load/ds_config/document.h"
#include "load/ds_config/lost_auto.h"
#include "load/ds_config/rules/autos/family.h"
#include "load/ds_config/schema.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

constexpr std::string_view kResolverNames[] = {"nobody", "HF Trainer", "accelerate"};

struct Resolution {
  Json value;
  Said rule;
  bool guessed = false;
};

constexpr std::string_view kFp16 = "fp16.enabled", kBf16 = "bf16.enabled";

int stage_of(const Json& document) {
  const Json* stage = value_at(document, "zero_optimization.stage");
  return stage != nullptr && stage->is_number() ? static_cast<int>(stage->get<double>()) : 0;
}

/// TrainingArguments' value: given, or its default.
template <typename T>
Resolution argument(const std::optional<T>& given, std::string_view name, T fallback) {
  if (given) return {*given, Said(name)};
  return {fallback, say("{}, its default", name)};
}

class Rules {
 public:
  Rules(const Json& document, const DsConfigContext& context)
      : document_(document), context_(context) {}

  /// What `rule` of the schema gives, or nullopt where it does not apply or lacks an input;
  /// `missing` then names the input.
  std::optional<Resolution> apply(std::string_view rule, Said& missing) const {
    const TrainerArguments& args = context_.trainer;
    // accelerate: utils/dataclasses.py writes infinity over whatever the file has.
    if (rule == "never") return Resolution{nullptr, "accelerate prints nothing"};
    if (rule == "zero") return Resolution{0, "always 0"};
    if (rule == "one") return Resolution{1.0, "always 1.0"};
    if (rule == "false") return Resolution{false, "off unless the trainer sets it"};
    if (rule == "o1") return Resolution{"O1", "fp16_opt_level, its default"};
    if (rule == "device_none")
      return Resolution{"none", "offload device of the plugin, its default"};
    if (rule == "micro_batch") return micro_batch();
    if (rule == "accumulation") return accumulation();
    if (rule == "train_batch") return train_batch(missing);
    if (rule == "max_grad_norm") return argument(args.max_grad_norm, "max_grad_norm", 1.0);
    if (rule == "learning_rate") return argument(args.learning_rate, "learning_rate", 5e-5);
    if (rule == "epsilon") return argument(args.adam_epsilon, "adam_epsilon", 1e-8);
    if (rule == "weight_decay") return argument(args.weight_decay, "weight_decay", 0.0);
    if (rule == "warmup_steps") return argument(args.warmup_steps, "warmup_steps", std::int64_t{0});
    if (rule == "fp16") return half(args.fp16, kFp16, "fp16");
    if (rule == "bf16") return half(args.bf16, kBf16, "bf16");
    if (rule == "betas") {
      const auto [one, two] = args.adam_betas.value_or(std::pair(0.9, 0.999));
      return Resolution{Json::array({one, two}), args.adam_betas
                                                     ? "[adam_beta1, adam_beta2]"
                                                     : "[adam_beta1, adam_beta2], their defaults"};
    }
    if (rule == "total_steps") {
      if (!args.total_steps) missing = "the number of training steps";
      return args.total_steps ? std::optional(Resolution{*args.total_steps, "training steps"})
                              : std::nullopt;
    }
    return by_hidden_size(rule, missing);
  }

 private:
  /// The file's own number comes first: the product must close.
  std::optional<std::int64_t> in_file(std::string_view path) const {
    const Json* value = value_at(document_, path);
    return value != nullptr && value->is_number() ? std::optional(integer_of(*value))
                                                  : std::nullopt;
  }

  bool is_on(std::string_view path) const {
    const Json* value = value_at(document_, path);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }

  /// Of a 16-bit type. Where the arguments are not known it is bf16, which most run: fp16 only
  /// where the file leaves nothing else open, and neither beside another that is on.
  Resolution half(const std::optional<bool>& given, std::string_view path,
                  std::string_view name) const {
    if (given || context_.trainer_given) return argument(given, name, false);
    const std::string_view other = path == kBf16 ? kFp16 : kBf16;
    for (const std::string_view on : {other, std::string_view("torch_autocast.enabled")})
      if (is_on(on)) return {false, say("off beside {}", on)};
    const Json* bf16 = value_at(document_, kBf16);
    const bool open = bf16 != nullptr && bf16->is_string();
    if (path == kFp16 && open) return {false, say("off beside {}", kBf16)};
    return {true, say("{}, as most run", name), true};
  }

  /// The part of the file's own train_batch_size that is left for `over` to share.
  std::optional<std::int64_t> of_train_batch(std::int64_t over) const {
    const auto batch = in_file("train_batch_size");
    if (!batch || !context_.world_size) return std::nullopt;
    const std::int64_t all =
        checked_mul(over, *context_.world_size / sequence_parallel_of(document_));
    if (all <= 0 || *batch <= 0 || *batch % all != 0) return std::nullopt;
    return *batch / all;
  }

  /// Arguments of other sizes would be refused, so the file's own numbers tell what they are.
  Resolution micro_batch() const {
    const auto& given = context_.trainer.per_device_train_batch_size;
    const auto& job = given ? given : context_.micro_batch;
    if (!job && !context_.trainer_given)
      if (const auto micro = of_train_batch(in_file("gradient_accumulation_steps").value_or(1)))
        return {*micro, "what the file's train_batch_size leaves"};
    return argument(job, "per_device_train_batch_size", std::int64_t{8});
  }

  Resolution accumulation() const {
    const auto& given = context_.trainer.gradient_accumulation_steps;
    const auto& job = given ? given : context_.gradient_accumulation;
    if (!job && !context_.trainer_given)
      if (const auto micro = in_file("train_micro_batch_size_per_gpu"))
        if (const auto steps = of_train_batch(*micro))
          return {*steps, "what the file's train_batch_size leaves"};
    return argument(job, "gradient_accumulation_steps", std::int64_t{1});
  }

  std::optional<Resolution> train_batch(Said& missing) const {
    if (!context_.world_size) {
      missing = "the number of ranks";
      return std::nullopt;
    }
    // transformers multiplies its own arguments; accelerate the values of the file. Arguments that
    // are not known are those that the file's numbers do not contradict.
    const bool own = context_.auto_resolver == AutoResolver::hf_trainer && context_.trainer_given;
    const auto file_micro = in_file("train_micro_batch_size_per_gpu");
    const auto file_steps = in_file("gradient_accumulation_steps");
    const std::int64_t micro = !own && file_micro ? *file_micro : integer_of(micro_batch().value);
    const std::int64_t steps = !own && file_steps ? *file_steps : integer_of(accumulation().value);
    const std::int64_t ranks = *context_.world_size / sequence_parallel_of(document_);
    return Resolution{checked_mul(checked_mul(micro, steps), ranks),
                      say("{} micro-batch x {} accumulation x {} ranks", micro, steps, ranks)};
  }

  std::optional<Resolution> by_hidden_size(std::string_view rule, Said& missing) const {
    const bool squared = rule == "hidden_squared";
    const bool prefetch = rule == "hidden_squared_90_percent";
    if (!squared && !prefetch && rule != "hidden_times_10") return std::nullopt;
    // transformers fills the two stage-3 keys only at stage 3; elsewhere nothing reads them.
    if (!squared && stage_of(document_) != 3) return std::nullopt;
    if (!context_.hidden_size) {
      missing = "the model's hidden size";
      return std::nullopt;
    }
    const std::int64_t h = *context_.hidden_size;
    const std::int64_t square = checked_mul(h, h);
    if (squared) return Resolution{square, "hidden_size^2"};
    if (!prefetch) return Resolution{checked_mul(h, 10), "10 x hidden_size"};
    // Python multiplies 0.9 * h first, then by h, in doubles.
    const double part = 0.9 * static_cast<double>(h) * static_cast<double>(h);
    return Resolution{static_cast<std::int64_t>(part), "int(0.9 x hidden_size^2)"};
  }

  const Json& document_;
  const DsConfigContext& context_;
};

struct Found {
  std::string path;
  const DsNode* key;  ///< nullptr: not in the schema
  DsUnknown block;    ///< of the block it stands in
};

bool is_auto(const Json& value) {
  return value.is_string() && value == "auto";
}

/// "auto" that DeepSpeed itself reads: pipeline.stages, expert_parallel.top_k, ...
bool means_itself(const DsNode& key) {
  if (is_auto(key.fallback)) return true;
  for (const Json& value : key.one_of)
    if (is_auto(value)) return true;
  return false;
}

void find_autos(const Json& object, const DsNode* node, const std::string& path,
                const DeepSpeedVersion& version, std::vector<Found>& found) {
  for (const auto& [name, value] : object.items()) {
    const DsNode* child = node == nullptr ? nullptr : node->child(name);
    const std::string here = path.empty() ? name : path + "." + name;
    if (is_auto(value))
      found.push_back({here, child, node == nullptr ? DsUnknown::open : node->unknown_at(version)});
    else if (value.is_object())
      find_autos(value, child, here, version, found);
  }
}

class Resolver {
 public:
  Resolver(Json& document, const DsConfigContext& context, DsFindings& findings)
      : document_(document), context_(context), findings_(findings) {}

  std::vector<ResolvedAuto> run() {
    std::vector<Found> found;
    open_precision();
    find_autos(document_, &ds_schema().root(), "", context_.version, found);
    // The batch is a product of the other two, so it comes last.
    for (const bool product : {false, true})
      for (const Found& one : found)
        if ((one.path == "train_batch_size") == product) resolve(one);
    return std::move(resolved_);
  }

 private:
  /// A file that says nothing of a precision leaves it to the trainer: "auto" of the one it runs
  /// in.
  void open_precision() {
    if (context_.auto_resolver == AutoResolver::none || !document_.is_object()) return;
    if (context_.resolver_guessed && !has_auto(document_)) return;
    for (const char* block : {"fp16", "bf16", "amp", "torch_autocast"})
      if (document_.contains(block)) return;
    const TrainerArguments& args = context_.trainer;
    const bool fp16 = args.fp16.value_or(false);
    const bool none = context_.trainer_given || (args.bf16 && args.fp16);
    if (!fp16 && none && !args.bf16.value_or(false)) return;
    set_value(document_, fp16 ? kFp16 : kBf16, "auto");
  }

  void resolve(const Found& found) {
    if (found.key == nullptr || found.key->block || means_itself(*found.key)) return;
    const DsNode& key = *found.key;
    const std::string& rule = rule_of(key);
    Said missing;
    if (!rule.empty()) {
      if (auto resolution = Rules(document_, context_).apply(rule, missing)) {
        set_value(document_, found.path, resolution->value);
        resolved_.push_back(
            {found.path, std::move(resolution->value),
             say("{}: {}", resolver_in_words(context_.auto_resolver), resolution->rule),
             resolution->guessed});
        return;
      }
    }
    const Json fallback = key.default_at(context_.version);
    remove_value(document_, found.path);
    LostAuto lost{AutoFate::missing_input, found.path, key, missing, fallback,
                  context_.auto_resolver};
    if (missing.empty()) {
      // DeepSpeed drops the word inside its typed blocks and would choke on it anywhere else.
      if (found.block == DsUnknown::refused) {
        drop(found, fallback);
        return;
      }
      lost.fate = context_.auto_resolver == AutoResolver::none ? AutoFate::nobody_resolves
                                                               : AutoFate::not_resolved;
    } else {
      drop(found, fallback);
    }
    check_rules(config_rules::autos::all(), lost, findings_);
  }

  void drop(const Found& found, const Json& fallback) {
    resolved_.push_back({found.path, fallback, "dropped: DeepSpeed's default"});
  }

  const std::string& rule_of(const DsNode& key) const {
    static const std::string none;
    switch (context_.auto_resolver) {
      case AutoResolver::hf_trainer:
        return key.trainer_rule;
      case AutoResolver::accelerate:
        return key.accelerate_rule;
      case AutoResolver::none:
        break;
    }
    return none;
  }

  Json& document_;
  const DsConfigContext& context_;
  DsFindings& findings_;
  std::vector<ResolvedAuto> resolved_;
};

}  // namespace

std::string_view resolver_in_words(AutoResolver resolver) {
  return kResolverNames[static_cast<std::size_t>(resolver)];
}

std::int64_t sequence_parallel_of(const Json& document) {
  const Json* size = value_at(document, "sequence_parallel_size");
  return size != nullptr && size->is_number_integer() && size->get<std::int64_t>() > 0
             ? size->get<std::int64_t>()
             : 1;
}

std::vector<ResolvedAuto> resolve_autos(Json& document, const DsConfigContext& context,
                                        DsFindings& findings) {
  return Resolver(document, context, findings).run();
}

}  // namespace shardplan
