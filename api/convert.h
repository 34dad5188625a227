// The library's own types as the public ones.
#pragma once

#include "base/diagnostic.h"
#include "cli/job_answer.h"
#include "shardplan/error.h"
#include "shardplan/estimate.h"

namespace shardplan::api {

/// All but what was remarked.
Estimate to_public(const cli::JobAnswer& answer);
std::vector<Fix> to_public(const std::vector<shardplan::Fix>& fixes);
Error public_error(const Diagnostic& diagnostic);

}  // namespace shardplan::api
