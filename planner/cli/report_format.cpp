#include "cli/report_format.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/diagnostic.h"

namespace shardplan::cli {

std::string report_format(const std::string& asked, const std::string& file) {
  if (!asked.empty()) return asked;
  if (file.empty()) return "md";
  const std::string extension = std::filesystem::path(file).extension().string();
  for (const char* format : {"html", "md", "json", "csv"})
    if (extension == std::string(".") + format) return format;
  if (extension == ".htm") return "html";
  if (extension == ".markdown") return "md";
  throw InputError({.file = file,
                    .message = fmt::format("'{}' names no format", extension),
                    .expected = ".html, .md, .json or .csv; or --format"});
}

std::string rendered(const report::Report& page, const std::string& format,
                     const report::Messages& words) {
  if (format == "html") return report::report_html(page, words);
  if (format == "json") return report::report_json(page, words);
  return format == "csv" ? report::report_csv(page, words) : report::report_markdown(page, words);
}

}  // namespace shardplan::cli
