// A job whose ds_config can be changed and estimated again: what a key costs is the difference.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/ds_config/edit.h"
#include "load/job.h"

namespace shardplan {

/// What one configuration needs on the fullest GPU and on a node, and its pace.
struct Price {
  std::int64_t gpu = 0, host = 0, nvme = 0;
  double seconds_per_token = 0;  ///< 0: unknown
  bool fits = false;
};

/// A variant of the job, estimated.
struct Priced {
  Estimate estimate;
  Price price;
};

class PricedJob {
 public:
  /// `job` is a shardplan.job/1 without ds_config; `config` a checked one. Throws InputError when
  /// the two make no job.
  PricedJob(Json job, std::string file, Json config, const JobContext& context,
            const Calibration& calibration);

  const Job& job() const { return job_; }
  const Estimate& estimate() const { return now_.estimate; }
  const Price& price() const { return now_.price; }
  const Calibration& calibration() const { return calibration_; }
  const Json& config() const { return config_; }

  /// The job with changes to its ds_config; nullopt where DeepSpeed, or the model of it, refuses
  /// the result, and `why` then says so.
  std::optional<Priced> with(const std::vector<Edit>& edits, std::string* why = nullptr) const;
  /// The same ds_config under a job that differs: `patch` is merged into it (RFC 7396).
  std::optional<Priced> with_job(const Json& patch) const;

 private:
  Job load(const Json& job, const Json& config) const;
  std::optional<Priced> priced(const Json& job, const Json& config, std::string* why) const;

  Json job_json_;
  std::string file_;
  Json config_;
  JobContext context_;
  Calibration calibration_;
  Job job_;
  Priced now_;
};

}  // namespace shardplan
