// Programs in Python that call transformers' or TRL's trainer themselves, and notebooks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/document.h"

namespace shardplan::importing {

/// Whether a text is a Python program: it imports, and calls something.
bool is_python(std::string_view text);

/// What each configuration of a trainer says that the program makes, with its model, its adapters
/// and how the base is loaded: keys as TrainingArguments and TRL's scripts name them. Empty where
/// it makes none.
std::vector<Document> trainers_of_program(std::string_view text, const std::string& file);

/// Whether a JSON object is a notebook of Jupyter's.
bool is_notebook(const Json& value);

/// The same of a notebook's cells; else the programs that its cells start ("!torchrun train.py"),
/// or the files that they write ("%%writefile job.yaml"). Throws InputError where there is none.
std::vector<Document> documents_of_notebook(const Json& notebook, const std::string& file);

}  // namespace shardplan::importing
