// The options of jobs for people to read: `shardplan catalog options`, and docs/reference/job.md.
#pragma once

#include <string>

#include "json/document.h"

namespace shardplan {

/// Every table of options, each under the object of a job that holds it.
std::string options_text();
Json options_json();

/// The page with its generated tables made anew: what stands between "<!-- options: NAME -->" and
/// "<!-- end -->". Throws InputError for a name that no table has, and for a table that the page
/// lacks.
std::string with_option_tables(const std::string& page, const std::string& file);

}  // namespace shardplan
