#include "parallel/problem.h"

#include "parallel/degrees.h"
#include "parallel/sharding.h"

namespace shardplan {

std::optional<DivisionProblem> division_problem(const Model& model, const Plan& plan) {
  if (auto problem = degree_problem(model, plan)) return problem;
  return sharding_problem(model, plan);
}

}  // namespace shardplan
