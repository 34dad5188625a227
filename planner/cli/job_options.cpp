#include "cli/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "cli/lists.h"
#include "json/given_texts.h"
#include "load/hardware.h"
#include "parallel/shard.h"

namespace shardplan::cli {
namespace {

/// A whole number stays one, as the job's reader wants it.
Json number_of(const std::string& flag, const std::string& text, Magnitude magnitude) {
  const Json value = Json::parse(text, nullptr, false);
  if (value.is_number()) return value;
  const auto amount = parse_quantity(text, magnitude);
  constexpr double kLargestWhole = 9e18;
  if (amount && std::floor(*amount) == *amount && *amount < kLargestWhole)
    return static_cast<std::int64_t>(*amount);
  if (amount) return *amount;
  throw InputError({.file = "<command line>",
                    .key = flag,
                    .message = fmt::format("found '{}'", text),
                    .expected = magnitude == Magnitude::bytes ? "a number of bytes, such as 512GB"
                                : magnitude == Magnitude::length ? "a number, such as 8192 or 8k"
                                                                 : "a number"});
}

Json boolean_of(const std::string& flag, const std::string& text) {
  const std::string word = normalized(text);
  for (const char* yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (word == no) return false;
  throw InputError({.file = "<command line>",
                    .key = flag,
                    .message = fmt::format("found '{}'", text),
                    .expected = "true or false"});
}

const char* type_name(JobField::Kind kind) {
  switch (kind) {
    case JobField::Kind::number:
      return "NUMBER";
    case JobField::Kind::boolean:
      return "true|false";
    case JobField::Kind::list:
    case JobField::Kind::numbers:
      return "LIST";
    case JobField::Kind::text:
      break;
  }
  return "TEXT";
}

Json value_of(const std::string& flag, const JobField& field, const std::string& text) {
  switch (field.kind) {
    case JobField::Kind::number:
      return number_of(flag, text, field.magnitude);
    case JobField::Kind::boolean:
      return boolean_of(flag, text);
    case JobField::Kind::list:
      return split_list(text);
    case JobField::Kind::numbers:
      return integer_list(flag, text, 0);
    case JobField::Kind::text:
      break;
  }
  return text;
}

bool is_file(const std::string& text) {
  std::error_code error;
  return text == kStandardInput || is_readable(text) || std::filesystem::exists(text, error);
}

/// A name and no file: nothing of that name is there, and it ends as no file of a job does.
bool is_word(const std::string& text) {
  constexpr std::array kEndings{".json", ".yaml", ".yml", ".toml", ".sh"};
  return !is_file(text) &&
         std::ranges::none_of(kEndings, [&](const char* ending) { return text.ends_with(ending); });
}

/// A cluster in words, or a file with one.
bool is_cluster(const std::string& text) {
  if (is_word(text)) return true;
  if (text == kStandardInput || !is_file(text)) return false;
  if (!text.ends_with(".json") && given_text(text) == nullptr) return false;
  const Json json = Json::parse(read_text_file(text), nullptr, false);
  return json.is_object() && json.contains("gpu") && !json.contains("model");
}

}  // namespace

void JobOptions::add_flags(CLI::App& command, std::string_view except) {
  flags_.reserve(job_fields().size());
  for (const JobField& field : job_fields()) {
    if (field.flag == except) continue;
    Flag& flag = flags_.emplace_back(Flag{&field, {}, nullptr});
    flag.option = command.add_option(std::string(field.flag), flag.value, field.help)
                      ->group("Job")
                      ->type_name(type_name(field.kind));
  }
}

bool JobOptions::given(std::string_view flag) const {
  return std::any_of(flags_.begin(), flags_.end(), [&](const Flag& f) {
    return f.option->count() > 0 && f.option->get_name() == flag;
  });
}

void JobOptions::add_files(CLI::App& command, const std::string& help) {
  command.add_option("JOB", files, help)
      ->each([this, first = true](const std::string& name) mutable {
        if (first && !is_word(name)) file = name;
        first = false;
      });
}

Json JobOptions::of_flags() const {
  Json job = Json::object();
  set_flags(job);
  return job;
}

bool JobOptions::only_words() const {
  return std::ranges::all_of(
      files, [](const std::string& name) { return is_word(name) || is_cluster(name); });
}

Json JobOptions::of_files(const Json& under) const {
  if (imported_) return *imported_;
  std::vector<std::string> jobs = files;
  Json words = Json::object();
  if (jobs.size() > 1 && is_cluster(jobs.back())) {
    words["cluster"] = jobs.back();
    jobs.pop_back();
  }
  const bool has_model = given("--model") || given("--mlp");
  if (jobs.size() == 1 && has_model && words.empty() && is_cluster(jobs.front())) {
    if (given("--cluster"))
      throw InputError(
          {.file = "<command line>",
           .key = "JOB",
           .message = fmt::format("found '{}' beside flags that say the model and the cluster",
                                  jobs.front()),
           .expected = "no word, or one of the flags less"});
    words["cluster"] = jobs.front();
    return words;
  }
  if (jobs.size() == 1 && is_word(jobs.front())) {
    words["model"] = jobs.front();
    return words;
  }
  if (jobs.size() == 1 && importing::is_own_job(file)) {
    Json job = read_json_file(file);
    overlay(job, words);
    return job;
  }
  overlay(words, of_flags());
  return imported(jobs, under, words);
}

Json JobOptions::imported(const std::vector<std::string>& jobs, const Json& under,
                          const Json& said) const {
  Json known = under;
  overlay(known, said);
  importing::Imported made = importing::import_files(jobs, "", known);
  for (const std::string& heading : made.headings) tell(heading + "\n");
  tell(importing::short_notes(made.notes));
  Json whole = made.job;
  set_flags(whole, "/cluster");  // which the import has taken, with what the files count
  check(made, whole, file);
  taken_for_granted_.clear();
  for (importing::Note& note : made.notes)
    if (note.kind == importing::Note::Kind::assumed)
      taken_for_granted_.push_back(std::move(note.field));
  imported_ = std::move(made.job);
  return *imported_;
}

void JobOptions::set_flags(Json& job, std::string_view except) const {
  for (const Flag& flag : flags_)
    if (flag.option->count() > 0 &&
        (except.empty() || !std::string_view(flag.field->pointer).starts_with(except)))
      set_field(job, flag.field->pointer,
                value_of(flag.option->get_name(), *flag.field, flag.value));
}

Json JobOptions::usual() const {
  if (!only_words()) return Json::object();
  const Json workload = merged(Json::object()).value("workload", Json::object());
  const bool trains = !workload.is_object() || workload.value("kind", Json()) != "inference";
  return trains ? Json{{"checkpointing", "full"}} : Json::object();
}

bool JobOptions::assumes_checkpointing() const {
  return !usual().empty() && !given("--checkpointing");
}

std::string JobOptions::assumed_checkpointing() const {
  if (!assumes_checkpointing()) return "";
  return "  with every block checkpointed, as fit assumes too: --checkpointing says another\n";
}

Json JobOptions::merged() const {
  return merged(usual());
}

Json JobOptions::merged(const Json& base) const {
  Json job = base;
  if (!files.empty()) overlay(job, of_files(base));
  set_flags(job, imported_ ? "/cluster" : "");
  take_method(job);
  return job;
}

/// "--lora-rank 16" asks for LoRA and "--serve" for inference, unless somebody has said another.
/// "--quantization 4bit" is of the weights that generate, or of the base that adapters train on.
void JobOptions::take_method(Json& job) const {
  const auto says_of = [&](std::string_view block) {
    return std::ranges::any_of(flags_, [&](const Flag& flag) {
      return flag.option->count() > 0 && flag.field->pointer.starts_with(block);
    });
  };
  const auto imply = [&](const char* key, const char* value) {
    if (!job["workload"].contains(key)) job["workload"][key] = value;
  };
  if (says_of("/workload/engine/")) imply("kind", "inference");
  const bool quantizes =
      given("--quantization") && job["workload"].value("kind", "train") == "train";
  if (quantizes) {
    job["workload"]["lora"]["quantization"] = job["workload"]["quantization"];
    job["workload"].erase("quantization");
  }
  if (quantizes || says_of("/workload/lora/")) imply("method", "lora");
}

Job JobOptions::load(const Json& job) const {
  Job loaded = cli::load(job, file);
  if (assumes_checkpointing()) loaded.assumed.emplace_back("checkpointing: full");
  return loaded;
}

namespace {

/// Throws for what is found out only where a network is divided, and would not be told by its key
/// later.
void divide(const Job& job) {
  const auto of_one = [](const Model& model, const Plan& plan) {
    if (is_sharded(plan)) shard(model, plan);
  };
  if (!job.rlhf) return of_one(job.model, job.plan);
  for (const Role& role : job.rlhf->roles) of_one(role.model, role.plan);
}

}  // namespace

void check(const importing::Imported& imported, const Json& job, const std::string& file) {
  try {
    divide(load(job, file));
  } catch (const InputError& error) {
    throw importing::explained(error, imported);
  }
}

Job load(const Json& job, const std::string& file) {
  const HardwareCatalog hardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &hardware;
  context.directory = file.empty() ? "" : std::filesystem::path(file).parent_path().string();
  return load_job(job, file.empty() ? "<command line>" : file, context);
}

}  // namespace shardplan::cli
