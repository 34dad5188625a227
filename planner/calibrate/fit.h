// Least squares over positive parameters.
#pragma once

#include <functional>
#include <vector>

namespace shardplan {

/// Changes `parameters` so that the squares of the logarithms of predicted over measured values
/// become least (Levenberg–Marquardt of Eigen over the logarithms of the parameters, which stay
/// positive). `logarithms` is called with the parameters set and returns one value a measurement.
/// Large ones count linearly (Huber, from a fifth on): a few outliers do not carry the fit.
void fit_positive(const std::vector<double*>& parameters,
                  const std::function<std::vector<double>()>& logarithms);

/// The same from each of `starts` of one of the parameters; keeps the fit with the least mean
/// error. For models with the larger of two terms, which have a valley for each.
void fit_positive_from(const std::vector<double>& starts, double& parameter,
                       const std::vector<double*>& parameters,
                       const std::function<std::vector<double>()>& logarithms);

/// Mean of |exp(x) - 1|.
double mean_error(const std::vector<double>& logarithms);

}  // namespace shardplan
