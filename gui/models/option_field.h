// A form's field made of an option's description: label, choices, help, and what a job says of it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "models/training_fields.h"
#include "options/option.h"

namespace shardplan::gui {

/// The JSON pointer of an option: `path` has dots between objects, and may be empty.
std::string pointer_to(std::string_view path, std::string_view key);

/// The label and the choices in the language of the windows, the pointer, and a `write` that sets
/// the key as it is. `path`: the object of the job that holds the option.
TrainingField form_field(const OptionInfo& option, std::string_view path);

/// A text or a whole number.
Json json_of(const QVariant& value);

// What tables are about in a job.
inline const Plan& plan_of(const Job& job) {
  return job.plan;
}
inline const Workload& workload_of(const Job& job) {
  return job.plan.workload;
}
inline const Framework& framework_of(const Job& job) {
  return job.plan.framework;
}
inline const Optimizer& optimizer_of(const Job& job) {
  return job.plan.optimizer;
}

/// A choice by its name, a count as a number.
QVariant variant_of(const OptionInfo& option, const OptionValue& value);

/// The field of the table's option `key`, read from the part of a job's plan that the table is
/// about.
template <typename Root>
TrainingField form_field(const OptionTable<Root>& table, std::string_view key,
                         const Root& (*part)(const Job&)) {
  for (const Option<Root>& option : table.options) {
    if (option.info.key != key) continue;
    TrainingField field = form_field(option.info, table.path);
    if (option.access.get != nullptr)
      field.read = [&option, part](const Job& job) {
        return variant_of(option.info, option.access.get(part(job)));
      };
    return field;
  }
  throw std::logic_error("no option " + std::string(key));
}

}  // namespace shardplan::gui
