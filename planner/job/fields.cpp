#include "job/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "options/tables.h"
#include "options/words.h"

namespace shardplan {
namespace {

using Kind = JobField::Kind;

constexpr std::string_view kPerceptron = "/model/mlp";

Kind kind_of(const OptionInfo& option) {
  switch (option.kind) {
    case OptionKind::boolean:
      return Kind::boolean;
    case OptionKind::integer:
    case OptionKind::number:
      return Kind::number;
    case OptionKind::texts:
      return Kind::list;
    case OptionKind::integers:
      return Kind::numbers;
    case OptionKind::text:
    case OptionKind::choice:
    case OptionKind::dtype:
    case OptionKind::block:
      break;
  }
  return Kind::text;
}

/// "workload.lora" and "rank": "/workload/lora/rank".
std::string pointer_to(std::string_view path, std::string_view key) {
  std::string pointer = path.empty() ? fmt::format("/{}", key) : fmt::format("/{}/{}", path, key);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

/// "FSDP1, FSDP2: shards and states on the host"
std::string with_owners(const std::vector<std::string_view>& owners, const std::string& help) {
  return owners.empty() ? help : fmt::format("{}: {}", fmt::join(owners, ", "), help);
}

void add_choices(std::vector<std::string_view>& known, std::span<const NamedValue> choices) {
  for (const NamedValue& choice : choices)
    if (std::find(known.begin(), known.end(), choice.name) == known.end())
      known.push_back(choice.name);
}

std::vector<JobField> fields_of_options() {
  std::vector<JobField> fields;
  std::vector<std::vector<std::string_view>> owners;
  for (const OptionGroup& group : all_option_groups())
    for (const ListedOption& option : group.options) {
      const OptionInfo& info = *option.info;
      if (info.flag.empty()) continue;
      const auto known = std::find_if(fields.begin(), fields.end(),
                                      [&](const JobField& f) { return f.flag == info.flag; });
      const auto place = static_cast<std::size_t>(known - fields.begin());
      if (known == fields.end()) {
        fields.push_back({info.flag,
                          pointer_to(group.path, info.key),
                          kind_of(info),
                          help_of(info),
                          info.also,
                          info.switches,
                          info.magnitude,
                          {}});
        owners.emplace_back();
      }
      add_choices(fields[place].choices, info.choices);
      if (!group.of.empty()) owners[place].push_back(group.of);
    }
  for (std::size_t i = 0; i < fields.size(); ++i)
    fields[i].help = with_owners(owners[i], fields[i].help);
  return fields;
}

/// The key of an object that a bare text in its place stands for.
std::string_view spoken_key(std::string_view object) {
  if (object == "checkpointing") return "policy";
  return object == "precision" ? "preset" : "name";
}

/// Makes an object of what is above a field where a bare text, or "true", stands for one.
void widen(Json& job, const Json::json_pointer& path) {
  if (path.empty()) return;
  widen(job, path.parent_pointer());
  if (!job.contains(path)) return;
  Json& object = job.at(path);
  if (object.is_string())
    object = Json{{std::string(spoken_key(path.back())), object}};
  else if (!object.is_object())
    object = Json::object();
}

/// "/framework/name" of {"framework": "ddp"} is the text itself.
const Json* find(const Json& job, std::string_view pointer) {
  const Json::json_pointer path{std::string(pointer)};
  if (job.contains(path)) return &job.at(path);
  const auto parent = path.parent_pointer();
  if (parent.empty() || path.back() != spoken_key(parent.back())) return nullptr;
  return job.contains(parent) && job.at(parent).is_string() ? &job.at(parent) : nullptr;
}

std::string shell_quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string argument(const Json& value) {
  if (value.is_string()) return shell_quoted(value.get<std::string>());
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value)
    list += (list.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : item.dump());
  return shell_quoted(list);
}

bool is_scalar_list(const Json& value) {
  for (const Json& item : value)
    if (item.is_structured()) return false;
  return true;
}

/// Takes away what the flags of `command` say already, and objects that are empty then.
bool nothing_left(Json rest, const std::set<std::string>& said) {
  for (const std::string& pointer : said) set_field(rest, pointer, nullptr);
  for (const auto* key : {"schema", "name", "comment", "description"}) rest.erase(key);
  const Json flat = rest.flatten();
  for (const auto& [pointer, value] : flat.items())
    if (!value.is_null() && !(value.is_structured() && value.empty())) return false;
  return true;
}

}  // namespace

std::span<const JobField> job_fields() {
  static const std::vector<JobField> kFields = fields_of_options();
  return kFields;
}

void set_field(Json& job, std::string_view pointer, Json value) {
  const Json::json_pointer path{std::string(pointer)};
  if (!value.is_null()) {
    if (pointer == kPerceptron) job.erase("model");  // it is a model, not beside one
    widen(job, path.parent_pointer());
    // "--compile" beside "--compile-mode": the object is a yes already.
    if (value == true && job.contains(path) && job.at(path).is_object()) return;
    job[path] = std::move(value);
    return;
  }
  const auto erase = [&job](const Json::json_pointer& field) {
    job.at(field.parent_pointer()).erase(field.back());
  };
  if (job.contains(path))
    erase(path);
  else if (find(job, pointer) != nullptr)
    erase(path.parent_pointer());
}

std::optional<Json> field_of(const Json& job, std::string_view pointer) {
  const Json* value = find(job, pointer);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return *value;
}

std::optional<std::string> command_with_flags(const Json& job) {
  std::string command = "shardplan estimate";
  std::set<std::string> said;
  for (const JobField& field : job_fields()) {
    auto value = field_of(job, field.pointer);
    if (field.pointer == kPerceptron) continue;  // a model that is an object stays in a file
    if (value && value->is_object()) {  // what a bare text would say, beside fields with flags
      const std::string text = fmt::format("{}/{}", field.pointer,
                                           spoken_key(std::string_view(field.pointer).substr(1)));
      value = field_of(job, text);
      if (value) said.emplace(text);
    }
    if (!value || value->is_object() || (value->is_array() && !is_scalar_list(*value))) continue;
    command += fmt::format(" {} {}", field.flag, argument(*value));
    said.emplace(field.pointer);
  }
  return nothing_left(job, said) ? std::optional(command) : std::nullopt;
}

std::string command_line(const Json& job, const std::string& file) {
  if (!file.empty()) return "shardplan estimate " + shell_quoted(file);
  return command_with_flags(job).value_or("shardplan estimate job.json");
}

}  // namespace shardplan
