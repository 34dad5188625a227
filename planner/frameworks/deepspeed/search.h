// DeepSpeed in a search.
#pragma once

#include "frameworks/planning.h"

namespace shardplan {

void deepspeed_strategies(std::vector<Strategy>& all, const Plan& base,
                          std::span<const std::int64_t> stages);
std::vector<FrameworkRule> deepspeed_rules(const RuleContext& context);
void take_deepspeed_degree(Plan& plan, Degree degree, const Plan& base);
void take_deepspeed_precision(Plan& plan, const Plan& base, bool own);

}  // namespace shardplan
