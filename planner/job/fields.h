// The fields of a job, each with its flag: what the command line and the windows write to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "json/document.h"

namespace shardplan {

struct JobField {
  enum class Kind : std::uint8_t { text, number, boolean, list, numbers };
  std::string_view flag;  ///< "--micro-batch"
  std::string pointer;    ///< JSON pointer: "/workload/micro_batch"
  Kind kind = Kind::text;
  std::string help;           ///< who has it, what it is and its choices
  std::string_view also;      ///< other flags for it, blanks between
  std::string_view switches;  ///< flags that say a value: "--bf16=bf16", blanks between
  Magnitude magnitude = Magnitude::count;  ///< of a number with letters
  std::vector<std::string_view> choices;   ///< all that it can be, where that is a short list
};

/// Every option that has a flag, in the order in which a command line says them. Of options that
/// share a flag (of several frameworks) the first one's help counts.
std::span<const JobField> job_fields();

/// Sets one field. "framework": "ddp" and the like become objects when a field inside of them is
/// set; a null value takes the field away.
void set_field(Json& job, std::string_view pointer, Json value);

/// The field's value, or nothing when the job leaves it open.
std::optional<Json> field_of(const Json& job, std::string_view pointer);

/// The command that answers the same question with flags alone: "shardplan estimate --model 7B
/// --cluster 4x40GB". Nothing for a job of which no flag can say all.
std::optional<std::string> command_with_flags(const Json& job);

/// The command that answers the same question: "shardplan estimate --model 7B --cluster 4x40GB".
/// With `file` the job is read from it. What no flag can say makes it name a file to save to.
std::string command_line(const Json& job, const std::string& file);

}  // namespace shardplan
