#include "lint/priced_job.h"

#include <utility>

#include "base/checked.h"
#include "base/diagnostic.h"

namespace shardplan {
namespace {

Priced price(const Job& job, const Calibration& calibration) {
  Priced priced{estimate(job.model, job.plan, calibration), {}};
  const Estimate& e = priced.estimate;
  const Workload& w = job.plan.workload;
  const double tokens = static_cast<double>(w.micro_batch) *
                        static_cast<double>(w.gradient_accumulation) *
                        static_cast<double>(w.sequence_length);
  priced.price = {.gpu = e.device.point,
                  .host = e.host_per_node.total(),
                  .nvme = e.host_per_node.nvme,
                  .seconds_per_token = e.time.step_seconds / tokens,
                  .fits = e.verdict.fits};
  return priced;
}

}  // namespace

PricedJob::PricedJob(Json job, std::string file, Json config, const JobContext& context,
                     const Calibration& calibration)
    : job_json_(std::move(job)),
      file_(std::move(file)),
      config_(std::move(config)),
      context_(context),
      calibration_(calibration),
      job_(load(job_json_, config_)),
      now_(shardplan::price(job_, calibration_)) {}

Job PricedJob::load(const Json& job, const Json& config) const {
  Json whole = job;
  Json& framework = whole["framework"];
  if (!framework.is_object()) framework = Json::object();
  framework["name"] = "deepspeed";
  framework["ds_config"] = config;
  framework["auto"] = name_of(AutoResolver::none);  // a checked configuration has no "auto" left
  return load_job(whole, file_, context_);
}

std::optional<Priced> PricedJob::priced(const Json& job, const Json& config,
                                        std::string* why) const {
  try {
    return shardplan::price(load(job, config), calibration_);
  } catch (const InputError& e) {
    if (why != nullptr) *why = e.diagnostic().message;
  } catch (const OverflowError& e) {
    if (why != nullptr) *why = e.what();
  }
  return std::nullopt;
}

std::optional<Priced> PricedJob::with(const std::vector<Edit>& edits, std::string* why) const {
  Json config = config_;
  apply(edits, config);
  return priced(job_json_, config, why);
}

std::optional<Priced> PricedJob::with_job(const Json& patch) const {
  Json job = job_json_;
  job.merge_patch(patch);
  return priced(job, config_, nullptr);
}

}  // namespace shardplan
