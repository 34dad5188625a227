// One file a command; commands.cpp lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"

namespace shardplan::cli {

/// Adds the command to `app`; `run` is set to what the command does when it was chosen.
using Run = std::function<Exit()>;
void add_fit(CLI::App& app, Run& run);
/// `fit` without any of its flags, which take longer to declare than the model does to read.
void add_fit_in_words(CLI::App& app, Run& run);
void add_model(CLI::App& app, Run& run);
void add_estimate(CLI::App& app, Run& run);
void add_compare(CLI::App& app, Run& run);
void add_max(CLI::App& app, Run& run);
void add_search(CLI::App& app, Run& run);
void add_export(CLI::App& app, Run& run);
void add_accuracy(CLI::App& app, Run& run);
void add_calibrate(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);
void add_table(CLI::App& app, Run& run);
void add_catalog(CLI::App& app, Run& run);
void add_lint(CLI::App& app, Run& run);
void add_import(CLI::App& app, Run& run);
void add_probe(CLI::App& app, Run& run);
void add_anchor(CLI::App& app, Run& run);
void add_completion(CLI::App& app, Run& run);

/// In the order in which --help lists them.
std::vector<std::string> command_names();

/// Declares the command that is asked for, else all: their flags are hundreds, and take longer than
/// a small answer. `in_words`: none of the arguments is a flag.
void add_commands(CLI::App& app, Run& run, std::string_view asked, bool in_words = false);

/// --format and -o, which every command has.
void add_output(CLI::App& command, Output& output,
                const std::vector<std::string>& formats = {"text", "json"});

}  // namespace shardplan::cli
