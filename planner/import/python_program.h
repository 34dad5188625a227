// What a Python program calls, as far as its text alone tells: names, keywords and their values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"

namespace shardplan::importing {

struct PythonCall {
  struct Argument {
    std::string name;           ///< "" of one that is given by its place
    std::optional<Json> value;  ///< nothing where only the program as it runs knows it
    int line = 0;
  };
  std::string name;  ///< "TrainingArguments", "FastLanguageModel.from_pretrained"
  int line = 0;
  std::vector<Argument> arguments;
};

/// The calls of a program, in the order in which they end: the arguments of a call before it. Knows
/// literals, lists, dictionaries, variables and defaults of functions that are set to such, sums of
/// whole numbers, torch's types by name, and as `args.NAME` the defaults of the program's own
/// arguments (argparse, dataclasses). A block of `if False:` does not run.
std::vector<PythonCall> python_calls(std::string_view text);

}  // namespace shardplan::importing
