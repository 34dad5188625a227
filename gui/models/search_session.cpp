#include "models/search_session.h"

#include <algorithm>
#include <atomic>

#include "base/format.h"
#include "models/core_words.h"
#include "models/preferences.h"
#include "models/text.h"
#include "questions/search/axes.h"

namespace shardplan::gui {
namespace {

RowsModel<RuledOutRow>::Column column(QString title, QString RuledOutRow::*member, bool is_number) {
  return {std::move(title),
          [member](const RuledOutRow& row, int role) -> QVariant {
            if (role == Qt::ToolTipRole) return row.reason;
            return role == Qt::DisplayRole || role == kValueRole ? QVariant(row.*member)
                                                                 : QVariant();
          },
          is_number};
}

}  // namespace

SearchSession::SearchSession(Session& session, QObject* parent)
    : QObject(parent),
      session_(session),
      found_(new RowsModel<FoundRow>(FoundPlans::columns({}, {}), this)),
      ruled_out_(
          new RowsModel<RuledOutRow>({column(tr("candidates"), &RuledOutRow::count, true),
                                      column(tr("ruled out because"), &RuledOutRow::reason, false)},
                                     this)) {
  connect(&session_, &Session::answered, this, &SearchSession::forget_if_another);
}

bool SearchSession::can_search() const {
  const std::optional<Job>& job = session_.answer().job;
  return job && job->plan.workload.kind == WorkKind::train;
}

void SearchSession::start(Objective objective) {
  if (can_search()) run(session_.document().json(), *session_.answer().job, objective);
}

void SearchSession::start_again(const Json& job, Objective objective) {
  try {
    const JobDocument& document = session_.document();
    run(job, load_job(job, document.name(), {&session_.workbench().hardware, document.directory()}),
        objective);
  } catch (const InputError&) {  // a file that it names is gone, and the search with it
  }
}

void SearchSession::run(Json written, Job job, Objective objective) {
  outcome_.reset();
  own_jobs_ = {written, session_.document().json()};
  work_.start([this, written = std::move(written), job = std::move(job), objective,
               calibration = session_.workbench().calibration](const Background::Control& control) {
    std::atomic<bool> stop{false};
    const std::stop_callback on_stop(control.stop, [&stop] { stop = true; });
    const SearchSpace space = make_space(job.model, job.plan, {});
    const SearchResult result = search(
        job.model, space, {.objective = objective}, calibration,
        {.stop = &stop, .progress = [&](const SearchProgress& p) {
           if (p.candidates > 0)
             control.progress(static_cast<double>(p.settled) / static_cast<double>(p.candidates));
         }});
    return [this, outcome = SearchOutcome{written, objective, space, result}] { take(outcome); };
  });
}

void SearchSession::resume(std::optional<SearchOutcome> outcome) {
  if (!outcome) return;
  own_jobs_ = {outcome->job, session_.document().json()};
  take(std::move(*outcome));
  Q_EMIT outcome_changed();
}

void SearchSession::take(SearchOutcome outcome) {
  outcome_ = std::move(outcome);
  set_preference(Preference::searched_job, text(outcome_->job.dump()));
  set_preference(Preference::objective, static_cast<int>(outcome_->objective));
  const std::vector<Found>& front = outcome_->result.front;
  found_->set_table(FoundPlans::columns(outcome_->space, front),
                    FoundPlans::rows(outcome_->space, front));
  std::vector<RuledOutRow> reasons;
  for (const RuleCount& rule : outcome_->result.ruled_out)
    if (rule.count > 0) reasons.push_back({words(rule.sentence), text(format_count(rule.count))});
  ruled_out_->set_rows(std::move(reasons));
}

QString SearchSession::summary() const {
  if (!outcome_) return {};
  return tr("%1 plans considered; %2 of them are the best trade-offs between time, memory and GPUs")
      .arg(text(format_count(outcome_->result.candidates)),
           text(format_count(static_cast<std::int64_t>(outcome_->result.front.size()))));
}

void SearchSession::use(int row) {
  if (!outcome_ || row < 0 || static_cast<std::size_t>(row) >= outcome_->result.front.size())
    return;
  const Plan plan = outcome_->result.front[static_cast<std::size_t>(row)].plan;
  is_using_ = true;  // the other plans stay to choose from
  session_.use_plan(plan);
  is_using_ = false;
  own_jobs_.push_back(session_.document().json());
}

void SearchSession::forget_if_another() {
  if (is_using_ || (!outcome_ && !work_.is_running())) return;
  const Json& now = session_.document().json();
  if (std::find(own_jobs_.begin(), own_jobs_.end(), now) != own_jobs_.end()) return;
  work_.cancel();
  outcome_.reset();
  set_preference(Preference::searched_job, {});
  found_->set_rows({});
  ruled_out_->set_rows({});
  Q_EMIT outcome_changed();
}

}  // namespace shardplan::gui
