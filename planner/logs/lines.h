// Lines of logs and the numbers in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::logs {

/// Without the sequences that colour a terminal's text.
std::string without_colours(std::string_view text);

/// The lines, also those that a progress bar writes over each other.
std::vector<std::string_view> lines_of(std::string_view text);

/// The number behind the first `key` of the line, blanks, a quote and commas between digits apart:
/// "tps: 5,762" and "'train_runtime': '225.8'" have one. Never infinite and never negative.
std::optional<double> number_after(std::string_view line, std::string_view key);

}  // namespace shardplan::logs
