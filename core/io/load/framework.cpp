#include "load/framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/nearest.h"

#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "json/given_texts.h"
#include "load/deepspeed.h"
#include "load/ds_config/version.h"
#include "load/options.h"
#include "options/tables.h"
#include "parallel/problem.h"
#include "trainers/registry.h"

namespace shardplan {
namespace {

const OptionInfo& of_deepspeed(std::string_view key) {
  return info_of(kDeepSpeedOptionTable, key);
}

/// {"device": ...} of the short form: "offload_optimizer": "cpu".
Json offload_block(ObjectReader& o, std::string_view key) {
  const auto device = read_as<OffloadDevice>(o, of_deepspeed(key));
  if (!device || *device == OffloadDevice::none) return nullptr;
  Json block{{"device", name_of(*device)}};
  if (*device == OffloadDevice::nvme) block["nvme_path"] = "/local_nvme";
  return block;
}

/// The ds_config that the short form stands for.
Json short_form(ObjectReader& o, std::int64_t stage) {
  Json zero{{"stage", stage}};
  for (const auto* key : {"offload_optimizer", "offload_param"}) {
    const Json block = offload_block(o, key);
    if (!block.is_null()) zero[key] = block;
  }
  return Json{{"zero_optimization", zero}};
}

void read_deepspeed(ObjectReader& o, FrameworkRead& read, std::int64_t world,
                    const JobContext& context, std::vector<std::string>& assumed) {
  if (const auto version = o.text("version")) {
    const auto parsed = parse_deepspeed_version(*version);
    if (!parsed) o.fail("version", fmt::format("found '{}'", *version), "a version such as 0.19.6");
    read.framework.deepspeed.version = *parsed;
  }
  read.auto_resolver = read_as<AutoResolver>(o, of_deepspeed("auto"));
  const bool injects = o.boolean("kernel_inject").value_or(false);
  const auto most = read_as<std::int64_t>(o, of_deepspeed("max_out_tokens"));
  if (most && !injects)
    o.fail("max_out_tokens", "given without kernel_inject", "\"kernel_inject\": true");
  if (injects) read.injection = {most.value_or(KernelInjection{}.max_out_tokens), world};
  read_options(o, kDeepSpeedOptionTable, read.framework);
  read.framework.deepspeed.moe = read_moe(o);
  const Json* config = o.find("ds_config");
  const auto stage = read_as<std::int64_t>(o, of_deepspeed("zero_stage"));
  if (config == nullptr) {
    if (!stage && !injects) assumed.push_back("framework: ZeRO stage 3");
    read.ds_config = short_form(o, stage.value_or(injects ? 0 : kStageOfShortForm));
    read.ds_file = o.file();
    return;
  }
  read.from_file = true;
  if (stage)
    o.fail("zero_stage", "given beside ds_config, which has a stage of its own", "one of the two");
  if (config->is_object()) {
    read.ds_config = *config;
    read.ds_file = o.file() + ": " + o.path_of("ds_config");
  } else if (config->is_string()) {
    const std::filesystem::path path(config->get<std::string>());
    const std::filesystem::path full =
        path.is_absolute() ? path : std::filesystem::path(context.directory) / path;
    std::error_code error;
    if (!is_readable(full.string()) && !std::filesystem::exists(full, error))
      o.fail("ds_config", say("there is no file '{}'", full.string()),
             "a ds_config.json; paths start at the job's folder");
    DsDocument read_file =
        read_ds_document(read_text_file(full.string()), full.string(), read.auto_resolver);
    read.ds_config = std::move(read_file.json);
    read.text = read_file.text;
    read.has_path = true;
    read.ds_file = full.string();
  } else {
    o.fail("ds_config", say("found {}", describe(*config)), "a path or an object");
  }
}

/// Whether `framework` has an option for every key of `said`.
bool has_options(const FrameworkTraits& framework, const Json& said) {
  const OptionGroup group = listed("", *framework.options.get());
  const auto is_listed = [&](const std::string& key) {
    return std::ranges::any_of(group.options,
                               [&](const ListedOption& o) { return o.info->key == key; });
  };
  return std::ranges::all_of(said.items(), [&](const auto& item) { return is_listed(item.key()); });
}

/// The default for `world` ranks, or where the job says what only another framework has, that one:
/// a ds_config is DeepSpeed's on one GPU too.
FrameworkKind usual_framework(std::int64_t world, const Json& said) {
  const FrameworkKind usual = default_framework(world);
  if (has_options(traits_of(usual), said)) return usual;
  for (const FrameworkTraits* framework : all_frameworks())
    if (has_options(*framework, said)) return framework->kind;
  return usual;
}

/// "zero3", "deepspeed-zero2": the framework, with its stage in a key of its own.
void refuse_stage_in_name(const ObjectReader& o, const std::string& said) {
  const std::string plain = normalized(said);
  if (plain.empty() || plain.back() < '0' || plain.back() > '3') return;
  const std::string word = plain.substr(0, plain.size() - 1);
  for (const FrameworkTraits* framework : all_frameworks()) {
    if (!framework->has_zero || word.empty()) continue;
    std::string name = word;
    for (const std::string_view part : {"stage", "zero"})
      if (name.ends_with(part)) name.resize(name.size() - part.size());
    const std::vector<std::string_view> words = words_of(framework->spoken);
    const bool named =
        name == framework->name.get() || std::ranges::find(words, name) != words.end();
    if (!named && !(name.empty() && word.starts_with("zero"))) continue;
    o.fail("name", fmt::format("'{}' has the stage in it", said),
           fmt::format("{0}, and zero_stage {1} (--framework {0} --zero-stage {1})",
                       framework->name.get(), plain.back()));
  }
}

/// "trl", "accelerate": what runs the steps, over one of the frameworks.
void refuse_trainer(const ObjectReader& o, const std::string& said) {
  for (const TrainerDescription* trainer : trainers()) {
    const std::vector<std::string_view> words = words_of(trainer->spoken);
    const auto is_said = [&](std::string_view word) {
      return normalized(word) == normalized(said);
    };
    if (!is_said(trainer->name) && std::ranges::none_of(words, is_said)) continue;
    o.fail("name", fmt::format("'{}' runs the steps of a framework", said),
           fmt::format("trainer {0} (--trainer {0}), and the framework that it is run with",
                       trainer->name));
  }
}

void check_framework_name(ObjectReader& o) {
  const OptionInfo& option = info_of(framework_name_table(), "name");
  const auto said = o.text("name");
  if (!said || find_choice(option.choices, *said) != nullptr) return;
  refuse_stage_in_name(o, *said);
  refuse_trainer(o, *said);
}

}  // namespace

FrameworkRead read_framework(ObjectReader& job, std::int64_t world, const JobContext& context,
                             std::vector<std::string>& assumed) {
  FrameworkRead read;
  static const Json kEmpty = Json::object();
  const Json* value = job.find("framework");
  Json named;
  if (value != nullptr && value->is_string()) {
    named = Json{{"name", *value}};
    value = &named;
  }
  ObjectReader o(value == nullptr ? kEmpty : *value, job.file(), job.path_of("framework"));
  check_framework_name(o);
  if (const auto kind = read_as<FrameworkKind>(o, info_of(framework_name_table(), "name"))) {
    read.framework.kind = *kind;
  } else {
    read.framework.kind = usual_framework(world, value == nullptr ? kEmpty : *value);
    assumed.push_back(fmt::format("framework: {}", name_of(read.framework.kind)));
  }
  const FrameworkTraits& framework = traits_of(read.framework);
  if (framework.has_zero)
    read_deepspeed(o, read, world, context, assumed);
  else
    read_options(o, *framework.options.get(), read.framework);
  if (const auto problem = framework.options_problem(read.framework))
    o.fail(problem->key, problem->message, problem->expected);
  o.finish();
  return read;
}

}  // namespace shardplan
