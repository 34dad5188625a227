#include "questions/search/degree_axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/problem.h"

namespace shardplan::degree_axes {

std::vector<std::int64_t> degree_values(const Plan& base, const AxisValues& values, Degree degree,
                                        const std::vector<std::int64_t>& asked,
                                        const std::vector<std::int64_t>& usual) {
  if (!asked.empty()) return sorted_values(asked);
  std::vector<std::int64_t> all{1};
  for (const FrameworkKind framework : searched_frameworks(base, values))
    if (support_of(framework, degree) == Support::yes)
      all.insert(all.end(), usual.begin(), usual.end());
  return sorted_values(std::move(all), base.parallel.*member_of(degree));
}

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= std::min(of, most); ++n)
    if (of % n == 0) all.push_back(n);
  return all;
}

bool has_problem(const Model& model, const Plan& plan, Degree degree) {
  const auto problem = division_problem(model, plan);
  return problem && problem->key == fmt::format("parallel.{}", name_of(degree));
}

AxisRule unsupported(Degree degree) {
  return {
      fmt::format("the framework has no {} degree, or none that can be estimated", name_of(degree)),
      kStrategyFlag, [degree](const Plan& p, std::size_t) {
        return p.parallel.*member_of(degree) > 1 &&
               support_of(p.framework.kind, degree) != Support::yes;
      }};
}

AxisRule fills_the_world() {
  return {
      "the degrees do not multiply to a divisor of the GPUs", kGpuFlag,
      [](const Plan& p, std::size_t) { return p.cluster.world() % p.parallel.model_ranks() != 0; }};
}
Axis axis_of(std::string name, std::string flag, const std::vector<std::int64_t>& values) {
  Axis axis;
  axis.name = std::move(name);
  axis.flag = std::move(flag);
  for (const std::int64_t v : values) axis.values.push_back(fmt::format("{}", v));
  return axis;
}

}  // namespace shardplan::degree_axes
