// Options as a job says them.
#pragma once

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "options/option.h"

namespace shardplan {

/// Null where there is no value; a choice by its name.
Json json_of(const OptionInfo& option, const OptionValue& value);

/// Sets every option of the table that has a value and that a job is to say.
template <typename Root>
void write_options(Json& object, const OptionTable<Root>& table, const Root& root) {
  for (const Option<Root>& option : table.options) {
    if (option.access.set == nullptr) continue;  // code of its own writes it
    if (option.rules.written != nullptr && !option.rules.written(root)) continue;
    const OptionValue value = option.access.get(root);
    if (is_said(value)) object[std::string(option.info.key)] = json_of(option.info, value);
  }
}

}  // namespace shardplan
