#include "questions/machines.h"

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "job/fields.h"
#include "load/job.h"
#include "questions/estimate_job.h"
#include "questions/largest.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

constexpr const char* kCommandLine = "<command line>";

/// What `fit` takes for granted, under what the question says.
Json job_of(const MachineQuestion& q, const MachineAnswer& a) {
  Json job{{"model", a.model}, {"cluster", a.machine}, {"checkpointing", "full"}};
  overlay(job, q.job);
  set_field(job, "/workload/method", a.method);
  return job;
}

/// The largest micro-batch that surely fits, else that probably does, else the job's own.
void find_batch(MachineAnswer& a, const Model& model, const Calibration& calibration) {
  LargestResult largest = largest_micro_batch(model, a.plan, calibration);
  const auto batch = largest.value ? largest.value : largest.probably;
  if (!batch) {
    a.estimate = estimate(model, a.plan, calibration);
    return;
  }
  a.plan.workload.micro_batch = *batch;
  a.estimate = std::move(largest.value ? *largest.at : *largest.at_probably);
}

void answer(MachineAnswer& a, const MachineQuestion& q, const HardwareCatalog& hardware,
            const Calibration& calibration) {
  const Json written = job_of(q, a);
  const Job job =
      load_job(written, kCommandLine, {.hardware = &hardware, .directory = q.directory});
  require_training(job, "table", kCommandLine);
  a.name = job.model.facts.name.empty() ? job.model.facts.model_type : job.model.facts.name;
  a.parameters = job.model.parameter_count();
  a.plan = job.plan;
  if (field_of(written, "/workload/micro_batch"))
    a.estimate = estimate(job.model, a.plan, calibration);
  else
    find_batch(a, job.model, calibration);
  a.cost = cost_of(job.model, a.plan, a.estimate, q.terms);
}

}  // namespace

std::vector<MachineAnswer> ask_machines(const MachineQuestion& question,
                                        const HardwareCatalog& hardware,
                                        const Calibration& calibration, unsigned threads) {
  std::vector<MachineAnswer> answers;
  for (const std::string& model : question.models)
    for (const std::string& method : question.methods)
      for (const std::string& machine : question.machines) {
        MachineAnswer a;
        a.model = model;
        a.method = method;
        a.machine = machine;
        answers.push_back(std::move(a));
      }
  for_each_index(answers.size(), threads, [&](std::size_t i) {
    try {
      answer(answers[i], question, hardware, calibration);
    } catch (const InputError& error) {
      answers[i].error = error.what();
    } catch (const OverflowError& error) {
      answers[i].error = std::string("the job is too large to compute: ") + error.what();
    }
  });
  return answers;
}

}  // namespace shardplan
