// Fits the rates of the time model to measured ones.
#pragma once

#include <string>
#include <vector>

#include "hardware/cluster.h"
#include "load/rates.h"
#include "load/record.h"
#include "timing/rates.h"

namespace shardplan {

/// How well one group of rates describes what it was fitted to.
struct FitQuality {
  std::string group;  ///< "products, 16 bits"
  std::size_t count = 0;
  double mean_error = 0;  ///< of seconds, relative
};

struct CalibrationFit {
  TimeRates rates;
  std::vector<FitQuality> quality;
};

/// `steps`: measured steps on several GPUs, for what frameworks add. Starts from `rates`; groups
/// without measurements keep theirs. `gpu` is what was measured.
CalibrationFit calibrate(const std::vector<RateRecord>& records, const std::vector<Record>& steps,
                         const Gpu& gpu, TimeRates rates);

// The parts, each in a file of its own.
void fit_products(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit);
void fit_attention(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit);
void fit_memory(const std::vector<KernelRow>& rows, const Gpu& gpu, CalibrationFit& fit);
void fit_burst(const std::vector<HostRow>& rows, const Gpu& gpu, CalibrationFit& fit);
void fit_host(const std::vector<HostRow>& rows, CalibrationFit& fit);
void fit_frameworks(const std::vector<Record>& steps, const std::vector<HostRow>& rows,
                    CalibrationFit& fit);
void fit_links(const std::vector<LinkRow>& rows, const Gpu& gpu, CalibrationFit& fit);

}  // namespace shardplan
