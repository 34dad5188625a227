#include "models/session.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "export/export.h"
#include "frameworks/planning_registry.h"
#include "job/cluster_json.h"
#include "job/fields.h"
#include "job/rewrite.h"
#include "questions/improvements.h"
#include "render/search_text.h"

namespace shardplan::gui {
namespace {

constexpr std::chrono::milliseconds kRest{60};

/// What makes a job fit; of one that does, what makes it faster.
std::vector<Fix> changes_for(const Job& job, const WrittenJob& written, const Estimate& now,
                             const Calibration& calibration, const Effort& effort) {
  return now.verdict.fits ? find_improvements(job, written, now, calibration, effort)
                          : find_fixes(job, written, now, calibration, effort);
}

}  // namespace

Session::Session(QObject* parent) : QObject(parent), workbench_(load_workbench()) {
  connect(&document_, &JobDocument::changed, this, &Session::recompute);
  find_fixes_soon_.setSingleShot(true);
  connect(&find_fixes_soon_, &QTimer::timeout, this, &Session::start_finding_fixes);
  recompute();
}

Session::~Session() = default;

void Session::recompute() {
  answer_ = gui::answer(document_.json(), document_.name(), document_.directory(), workbench_);
  // As `shardplan fit` says it of the same question.
  if (answer_.job && document_.assumes("/checkpointing") &&
      answer_.job->plan.workload.kind == WorkKind::train)
    answer_.job->assumed.emplace_back("checkpointing: full");
  ++answers_;
  fixes_.clear();  // they belong to the answer before
  headroom_.reset();
  find_fixes_later();
  Q_EMIT answered();
}

/// When a slider rests: the threads that look for fixes would take the processor from the answers
/// to its next moves, and what they found would be dropped.
void Session::find_fixes_later() {
  finder_.cancel();
  find_fixes_soon_.stop();
  if (answer_.estimate) {
    find_fixes_soon_.start(kRest);
  } else {
    Q_EMIT fixes_changed();
  }
}

void Session::start_finding_fixes() {
  finder_.start([this, job = *answer_.job, now = *answer_.estimate, written = written_job(),
                 calibration = workbench_.calibration](const Background::Control& control) {
    std::vector<Fix> fixes =
        changes_for(job, written, now, calibration, {.threads = 0, .stop = control.stop});
    const auto headroom = headroom_of(job, calibration, control.stop);
    return [this, fixes = std::move(fixes), headroom] {
      fixes_ = fixes;
      headroom_ = headroom;
      Q_EMIT fixes_changed();
    };
  });
}

void Session::find_fixes_now() {
  find_fixes_soon_.stop();
  finder_.cancel();
  fixes_.clear();
  headroom_.reset();
  if (answer_.estimate) {
    headroom_ = headroom_of(*answer_.job, workbench_.calibration, {});
    fixes_ = changes_for(*answer_.job, written_job(), *answer_.estimate, workbench_.calibration,
                         {.threads = 0});
  }
  Q_EMIT fixes_changed();
}

WrittenJob Session::written_job() const {
  return {document_.json(),
          document_.name(),
          {.hardware = &workbench_.hardware, .directory = document_.directory()}};
}

void Session::apply(const Fix& fix) {
  if (!answer_.job) return;
  const Json said = with_fields(document_.json(), fix.changes);
  try {
    const WrittenJob written = written_job();
    const Job job = load_job(said, written.file, written.context);
    Plan changed = job.plan;
    for (const Change& change : fix.changes)
      if (change.apply) change.apply(changed);
    document_.replace(rewritten(said, document_.directory(), job.plan, changed));
  } catch (const InputError&) {
    recompute();  // a file that the job names is gone: the answer says which
  }
}

void Session::change_plan(const std::function<void(Plan&)>& edit) {
  if (!answer_.job) return;
  Plan changed = answer_.job->plan;
  edit(changed);
  try {
    document_.replace(
        rewritten(document_.json(), document_.directory(), answer_.job->plan, changed));
  } catch (const InputError&) {
    recompute();  // a file that the job names is gone: the answer says which
  }
}

void Session::use_plan(const Plan& plan) {
  if (!answer_.job) return;
  const Job found = job_with(*answer_.job, plan);
  Json job = job_json(document_.json(), found);
  planning_of(plan).inline_files(job, plan);
  document_.replace(std::move(job));
}

void Session::change_cluster(const std::function<void(Cluster&)>& edit, bool own_gpu,
                             const std::string& key) {
  if (answer_.the_cluster() == nullptr) return;
  Cluster changed = *answer_.the_cluster();
  edit(changed);
  const auto gpu = field_of(document_.json(), "/cluster/gpu");
  const Json whole = cluster_json(changed, own_gpu || (gpu && gpu->is_object()));
  if (key.empty()) {
    document_.set("/cluster", whole);
  } else {
    document_.set("/cluster/" + key, whole.value(key, Json()));
  }
}

}  // namespace shardplan::gui
