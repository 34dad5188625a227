// The command line speaks English: messages of the store of words, as reports and windows have
// them.
#pragma once

#include <string>

#include "report/report.h"

namespace shardplan {

std::string english(const report::Text& text);
/// "" for an empty cell.
std::string english(const report::Cell& cell);

}  // namespace shardplan
