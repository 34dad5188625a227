#include "calibrate/fit.h"

#include <cmath>
#include <limits>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

namespace shardplan {
namespace {

/// Residuals whose squares are Huber's loss.
double huber(double x) {
  constexpr double kLinearFrom = 0.2;
  const double size = std::abs(x);
  if (size <= kLinearFrom) return x;
  return std::copysign(std::sqrt(2 * kLinearFrom * size - kLinearFrom * kLinearFrom), x);
}

struct Residuals {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const std::vector<double*>& parameters;
  const std::function<std::vector<double>()>& logarithms;
  int count;

  int inputs() const { return static_cast<int>(parameters.size()); }
  int values() const { return count; }
  int operator()(const Eigen::VectorXd& at, Eigen::VectorXd& out) const {
    for (int i = 0; i < at.size(); ++i) *parameters[static_cast<std::size_t>(i)] = std::exp(at[i]);
    const std::vector<double> all = logarithms();
    for (int i = 0; i < count; ++i) out[i] = huber(all[static_cast<std::size_t>(i)]);
    return 0;
  }
};

}  // namespace

void fit_positive(const std::vector<double*>& parameters,
                  const std::function<std::vector<double>()>& logarithms) {
  const auto count = static_cast<int>(logarithms().size());
  if (count < static_cast<int>(parameters.size())) return;
  Eigen::VectorXd at(static_cast<int>(parameters.size()));
  for (int i = 0; i < at.size(); ++i) at[i] = std::log(*parameters[static_cast<std::size_t>(i)]);
  // The model has steps (waves of tiles): differences over a thousandth see its slope.
  constexpr double kStep = 1e-6;
  Eigen::NumericalDiff<Residuals, Eigen::Central> residuals(
      Residuals{parameters, logarithms, count}, kStep);
  Eigen::LevenbergMarquardt<decltype(residuals)> solver(residuals);
  solver.parameters.maxfev = 2000;
  solver.minimize(at);
  for (int i = 0; i < at.size(); ++i) *parameters[static_cast<std::size_t>(i)] = std::exp(at[i]);
}

void fit_positive_from(const std::vector<double>& starts, double& parameter,
                       const std::vector<double*>& parameters,
                       const std::function<std::vector<double>()>& logarithms) {
  const auto set = [&](const std::vector<double>& to) {
    for (std::size_t i = 0; i < parameters.size(); ++i) *parameters[i] = to[i];
  };
  const auto values = [&] {
    std::vector<double> all;
    for (const double* p : parameters) all.push_back(*p);
    return all;
  };
  const std::vector<double> before = values();
  std::vector<double> best = before;
  double least = std::numeric_limits<double>::max();
  for (const double start : starts) {
    set(before);
    parameter = start;
    fit_positive(parameters, logarithms);
    const double error = mean_error(logarithms());
    if (error >= least) continue;
    least = error;
    best = values();
  }
  set(best);
}

double mean_error(const std::vector<double>& logarithms) {
  if (logarithms.empty()) return 0;
  double sum = 0;
  for (const double x : logarithms) sum += std::abs(std::expm1(x));
  return sum / static_cast<double>(logarithms.size());
}

}  // namespace shardplan
