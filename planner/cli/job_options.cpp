#include "cli/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/lists.h"
#include "load/hardware.h"

namespace shardplan::cli {
namespace {

Json number_of(const std::string& flag, const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  if (!value.is_number())
    throw InputError({.file = "<command line>",
                      .key = flag,
                      .message = fmt::format("found '{}'", text),
                      .expected = "a number"});
  return value;
}

Json boolean_of(const std::string& flag, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
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

Json value_of(const std::string& flag, JobField::Kind kind, const std::string& text) {
  switch (kind) {
    case JobField::Kind::number:
      return number_of(flag, text);
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
  command.add_option("JOB", files, help)->each([this](const std::string& name) {
    if (file.empty()) file = name;
  });
}

Json JobOptions::of_flags() const {
  Json job = Json::object();
  set_flags(job);
  return job;
}

Json JobOptions::of_files(const Json& under) const {
  if (imported_) return *imported_;
  if (files.size() == 1 && importing::is_own_job(file)) return read_json_file(file);
  Json known = under;
  overlay(known, of_flags());
  importing::Imported imported = importing::import_files(files, "", known);
  for (const std::string& heading : imported.headings) fmt::print(stderr, "{}\n", heading);
  fmt::print(stderr, "{}", importing::short_notes(imported.notes));
  Json whole = imported.job;
  set_flags(whole);
  check(imported, whole, file);
  imported_ = std::move(imported.job);
  return *imported_;
}

void JobOptions::set_flags(Json& job) const {
  for (const Flag& flag : flags_)
    if (flag.option->count() > 0)
      set_field(job, flag.field->pointer,
                value_of(flag.option->get_name(), flag.field->kind, flag.value));
}

Json JobOptions::merged(const Json& base) const {
  Json job = base;
  if (!files.empty()) overlay(job, of_files(base));
  set_flags(job);
  return job;
}

void check(const importing::Imported& imported, const Json& job, const std::string& file) {
  try {
    load(job, file);
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
