#include "import/unread.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"

namespace shardplan::importing {
namespace {

bool has_below(const Json& value, const char* block, const char* key) {
  return value.contains(block) && value.at(block).is_object() && value.at(block).contains(key);
}

/// What a recipe makes is named by "_component_", most of it the library's own.
bool is_torchtune(const Json& value) {
  return std::any_of(value.begin(), value.end(), [](const Json& part) {
    const Json* made = part.is_object() ? value_below(part, "_component_") : nullptr;
    return made != nullptr && made->is_string() &&
           made->get_ref<const std::string&>().starts_with("torchtune.");
  });
}

bool is_litgpt(const Json& value) {
  return has_below(value, "train", "global_batch_size") &&
         has_below(value, "train", "micro_batch_size");
}

bool is_nanotron(const Json& value) {
  return has_below(value, "parallelism", "dp") && has_below(value, "tokens", "micro_batch_size");
}

/// A fork of verl with keys of its own.
bool is_easyr1(const Json& value) {
  return has_below(value, "worker", "actor") && has_below(value, "data", "rollout_batch_size");
}

}  // namespace

void refuse_unread(const Document& document) {
  const Json& value = document.value;
  if (!value.is_object()) return;
  const Json schema = value.value("schema", Json());
  if (schema.is_string() && schema.get_ref<const std::string&>().starts_with("shardplan.job"))
    throw InputError({.file = document.file,
                      .message = "is a job, which is whole by itself",
                      .expected = "it alone, or a trainer's files"});
  const char* trainer = is_torchtune(value)  ? "torchtune"
                        : is_litgpt(value)   ? "LitGPT"
                        : is_nanotron(value) ? "nanotron"
                        : is_easyr1(value)   ? "EasyR1"
                                             : nullptr;
  if (trainer == nullptr) return;
  throw InputError({.file = document.file,
                    .message = fmt::format("is a file of {}, which is not read", trainer),
                    .expected = "`shardplan fit MODEL CLUSTER` with what it says as flags, such as "
                                "--method lora --micro-batch 2 --sequence-length 4096"});
}

}  // namespace shardplan::importing
