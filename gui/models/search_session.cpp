#include "models/search_session.h"

#include <algorithm>
#include <atomic>

#include "base/format.h"
#include "models/core_words.h"
#include "models/preferences.h"
#include "models/provenance.h"
#include "models/text.h"
#include "questions/search/axes.h"
#include "render/describe.h"

namespace shardplan::gui {
namespace {

/// Where the axes leave a choice: "ZeRO-3, micro-batch 4, ..."; an axis of one value says nothing.
QString choices_of(const SearchSpace& space, const Found& found) {
  QStringList out;
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    const Axis& axis = space.axes[a];
    if (axis.values.size() < 2) continue;
    QString name = text(axis.name).replace(QLatin1Char('_'), QLatin1Char(' '));
    out.push_back(QStringLiteral("%1 %2").arg(name, text(axis.values[found.choice[a]])));
  }
  return out.join(QStringLiteral(", "));
}

/// What each host needs; as a need where nobody knows what it has.
QString host_of(const ResourceVerdict& host) {
  if (host.needed == 0) return QStringLiteral("–");
  const QString bytes = text(format_bytes(host.needed));
  return host.available ? bytes : SearchSession::tr("if it has %1").arg(bytes);
}

FoundRow row_of(const SearchSpace& space, const Found& found) {
  const TimeEstimate& t = found.estimate.time;
  return {choices_of(space, found),
          text(format_bytes(found.estimate.device.point)),
          host_of(found.estimate.verdict.host),
          t.step_seconds > 0 ? text(format_seconds(t.step_seconds)) : QStringLiteral("–"),
          text(format_count(static_cast<std::int64_t>(t.tokens_per_second))),
          text(format_count(found.plan.cluster.world())),
          Provenance::device(found.estimate, found.plan) + Provenance::step(found.estimate) +
              Provenance::rates(found.estimate, found.plan),
          static_cast<double>(found.estimate.device.point),
          t.tokens_per_second > 0 ? 1 / t.tokens_per_second : 0};
}

template <typename Row>
typename RowsModel<Row>::Column column(QString title, QString Row::*member, QString Row::*hint,
                                       bool is_number, double Row::*value = nullptr) {
  return {std::move(title),
          [member, hint, value](const Row& row, int role) -> QVariant {
            if (role == kValueRole) return value ? QVariant(row.*value) : QVariant(row.*member);
            if (role == Qt::ToolTipRole) return row.*hint;
            return role == Qt::DisplayRole ? QVariant(row.*member) : QVariant();
          },
          is_number};
}

}  // namespace

SearchSession::SearchSession(Session& session, QObject* parent)
    : QObject(parent),
      session_(session),
      found_(new RowsModel<FoundRow>(
          {column(tr("each GPU"), &FoundRow::memory, &FoundRow::hint, true, &FoundRow::bytes),
           column(tr("each host"), &FoundRow::host, &FoundRow::hint, true),
           column(tr("step"), &FoundRow::step, &FoundRow::hint, true),
           column(tr("tokens/s"), &FoundRow::tokens, &FoundRow::hint, true,
                  &FoundRow::seconds_a_token),
           column(tr("GPUs"), &FoundRow::gpus, &FoundRow::hint, true),
           column(tr("plan"), &FoundRow::plan, &FoundRow::plan, false)},
          this)),
      ruled_out_(new RowsModel<RuledOutRow>(
          {column(tr("candidates"), &RuledOutRow::count, &RuledOutRow::reason, true),
           column(tr("ruled out because"), &RuledOutRow::reason, &RuledOutRow::reason, false)},
          this)) {
  connect(&session_, &Session::answered, this, &SearchSession::forget_if_another);
  connect(&work_, &Background::started, this, &SearchSession::started);
  connect(&work_, &Background::progressed, this, &SearchSession::progressed);
  connect(&work_, &Background::finished, this, &SearchSession::finished);
  connect(&work_, &Background::failed, this, &SearchSession::failed);
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
  Q_EMIT finished();
}

void SearchSession::take(SearchOutcome outcome) {
  outcome_ = std::move(outcome);
  set_preference(Preference::searched_job, text(outcome_->job.dump()));
  set_preference(Preference::objective, static_cast<int>(outcome_->objective));
  std::vector<FoundRow> found;
  for (const Found& f : outcome_->result.front) found.push_back(row_of(outcome_->space, f));
  found_->set_rows(std::move(found));
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
  Q_EMIT finished();
}

}  // namespace shardplan::gui
