#include "models/answer.h"

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "load/calibration.h"
#include "load/cluster.h"
#include "load/hardware.h"
#include "load/model.h"
#include "questions/estimate_job.h"

namespace shardplan::gui {
namespace {

/// What `compute` returns, or why it cannot.
template <typename Compute>
std::optional<Diagnostic> failure_of(Compute compute) {
  try {
    compute();
    return std::nullopt;
  } catch (const InputError& e) {
    return e.diagnostic();
  } catch (const OverflowError& e) {
    return Diagnostic{.message = e.what()};
  }
}

void answer_parts(Answer& a, const Json& job, const std::string& file, const std::string& directory,
                  const Workbench& workbench) {
  if (!job.is_object()) return;
  if (const auto it = job.find("cluster"); it != job.end()) {
    const auto failure =
        failure_of([&] { a.cluster = load_cluster(*it, file, "cluster", workbench.hardware); });
    if (failure) a.error = failure;
  }
  if (const auto it = job.find("model"); it != job.end())
    failure_of([&] { a.model = load_model(*it, {file, "model", directory}, {}); });
}

}  // namespace

Workbench load_workbench() {
  return {load_hardware_catalog(), load_calibration()};
}

const Cluster* Answer::the_cluster() const {
  if (job) return &job->plan.cluster;
  return cluster ? &*cluster : nullptr;
}

const Model* Answer::the_model() const {
  if (job) return &job->model;
  return model ? &*model : nullptr;
}

Answer answer(const Json& job, const std::string& file, const std::string& directory,
              const Workbench& workbench) {
  Answer a;
  a.error = failure_of([&] {
    a.job = load_job(job, file, {&workbench.hardware, directory});
    DetailedEstimate detail = estimate_job_in_detail(*a.job, workbench.calibration);
    a.estimate = std::move(detail.estimate);
    a.ranks = std::move(detail.ranks);
    a.timeline = std::make_shared<const MemoryTimeline>(memory_timeline(detail.program));
  });
  if (a.error) {
    a.job.reset();
    a.estimate.reset();
    a.ranks.clear();
    answer_parts(a, job, file, directory, workbench);
  }
  return a;
}

}  // namespace shardplan::gui
