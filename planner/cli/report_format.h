// The formats of reports on the command line.
#pragma once

#include <string>

#include "report/render/render.h"

namespace shardplan::cli {

/// `asked`, or what the file's extension says; Markdown on standard output ("" for the file).
std::string report_format(const std::string& asked, const std::string& file);

std::string rendered(const report::Report& page, const std::string& format,
                     const report::Messages& words);

}  // namespace shardplan::cli
