#include "import/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "job/fields.h"

namespace shardplan::importing {
namespace {

/// "/workload/micro_batch" as "workload.micro_batch".
std::string dotted(std::string_view pointer) {
  std::string field(pointer.substr(pointer.starts_with('/') ? 1 : 0));
  std::replace(field.begin(), field.end(), '/', '.');
  return field;
}

}  // namespace

void Recipe::set(const std::string& pointer, Json value, const Origin& origin) {
  const auto before = origins.find(pointer);
  const Json* said = find(pointer);
  if (before != origins.end() && said != nullptr && before->second.file != origin.file &&
      *said != value)
    throw InputError({.file = origin.file,
                      .key = origin.key,
                      .message = fmt::format("{} here, but {} of {} has {}", value.dump(),
                                             before->second.key, before->second.file, said->dump()),
                      .expected = "the same in both files",
                      .position = {origin.line, origin.line > 0 ? 1 : 0}});
  set_field(job, pointer, std::move(value));
  origins[pointer] = origin;
}

void Recipe::set_default(const std::string& pointer, Json value) {
  if (find(pointer) == nullptr) set_field(job, pointer, std::move(value));
}

void Recipe::assume(const std::string& pointer, Json value, std::string reason) {
  if (find(pointer) != nullptr) return;
  note({.kind = Note::Kind::assumed,
        .field = fmt::format("{}: {}", dotted(pointer),
                             value.is_string() ? value.get<std::string>() : value.dump()),
        .reason = std::move(reason)});
  set_field(job, pointer, std::move(value));
}

const Json* Recipe::find(std::string_view pointer) const {
  const Json::json_pointer at{std::string(pointer)};
  return job.contains(at) ? &job.at(at) : nullptr;
}

void Recipe::take_algorithm(std::string name, const Origin& origin) {
  algorithm = std::move(name);
  origins["/workload/kind"] = origin;
  origins["/workload/algorithm"] = origin;
}

}  // namespace shardplan::importing
