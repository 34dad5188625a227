#include "models/estimate_models.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/serving_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "render/foundation.h"
#include "report/words.h"
#include "save/estimate.h"

namespace shardplan::gui {
namespace {

/// Of a kind of number, or of a remark.
QString standing_word(const std::string& standing) {
  for (const Source source :
       {Source::exact, Source::modelled, Source::calibrated, Source::measured, Source::assumed})
    if (standing == name_of(source)) return words(source);
  return words(report::message("standing." + standing));
}

/// What a statement of the answer's foundation says; of what was left open, part by part.
QString statement_words(const std::string& english) {
  const std::string open = "because nothing else was said: ";
  if (!english.starts_with(open)) return note_words(english);
  QStringList parts;
  for (const QString& part : text(english.substr(open.size())).split(QStringLiteral("; ")))
    parts.push_back(note_words(part.toStdString()));
  return words(open + parts.join(QStringLiteral("; ")).toStdString());
}

template <typename Row>
QVariant shown(const QString& display, const Row& row, int role) {
  if (role == Qt::DisplayRole) return display;
  if (role == Qt::ToolTipRole || role == Qt::AccessibleDescriptionRole) return row.hint;
  return {};
}

}  // namespace

std::vector<ResourceLine> EstimateModels::resources(const Answer& a) {
  std::vector<ResourceLine> out;
  const Estimate& e = *a.estimate;
  const auto add = [&](const QString& name, const ResourceVerdict& r, std::int64_t upper) {
    ResourceLine line;
    line.name = name;
    line.fit = r.fit;
    line.is_used = r.needed > 0;
    line.needed = static_cast<double>(r.needed);
    line.upper = static_cast<double>(upper);
    line.available = static_cast<double>(r.available.value_or(0));
    line.verdict = line.is_used ? words(report::words_of(r.fit)) : tr("not used");
    if (line.is_used && r.available) {
      const std::int64_t spare = *r.available - r.needed;
      line.amount = tr("%1 of %2").arg(bytes_text(r.needed), bytes_text(*r.available));
      line.margin = spare >= 0 ? tr("%1 to spare").arg(bytes_text(spare))
                               : tr("%1 too much").arg(bytes_text(-spare));
    } else if (line.is_used) {
      line.amount = bytes_text(r.needed);
      line.verdict = tr("not known");
      line.margin = tr("fits if each node has that much");
    }
    out.push_back(line);
  };
  add(tr("GPU"), e.verdict.gpu, e.device.upper);
  out.back().margin += tr("; upper bound %1").arg(bytes_text(e.device.upper));
  out.back().hint = Provenance::device(e, a.job->plan);
  add(tr("Host"), e.verdict.host, e.verdict.host.needed);
  out.back().hint = Provenance::host(e.host_per_node);
  add(tr("NVMe"), e.verdict.nvme, e.verdict.nvme.needed);
  out.back().hint = Provenance::nvme(e.host_per_node);
  return out;
}

std::vector<Share> EstimateModels::breakdown(const Estimate& e, const Plan& plan) {
  std::vector<Share> out;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0)
      out.push_back({words(report::words_of(line.category, plan.cluster.gpu.abilities)),
                     bytes_text(line.at_peak),
                     words(line.source),
                     {},
                     static_cast<double>(line.at_peak),
                     static_cast<int>(index_of(line.category))});
  return out;
}

std::vector<Share> EstimateModels::breakdown(const Estimate& e, const Plan& plan,
                                             const Calibration& calibration) {
  std::vector<Share> out = breakdown(e, plan);
  for (Share& share : out)
    share.hint = Provenance::category(e, plan, e.breakdown[static_cast<std::size_t>(share.colour)],
                                      calibration);
  return out;
}

std::vector<Share> EstimateModels::time(const Answer& a) {
  if (a.estimate->serving) return ServingWords::pass(*a.estimate);
  const TimeEstimate& t = a.estimate->time;
  std::vector<Share> out;
  const auto add = [&](const QString& name, double seconds, int colour, const QString& formula) {
    if (seconds > 0)
      out.push_back({name, text(format_seconds(seconds)), words(t.source),
                     Provenance::seconds(name, seconds, formula, t.source), seconds, colour});
  };
  add(tr("compute"), t.compute_seconds, 0,
      tr("operations of the step at the rates of this GPU, operation by operation"));
  add(tr("exposed communication"), t.exposed_communication_seconds, 1,
      tr("bytes sent over the links, less what hides behind computing"));
  add(tr("copies"), t.exposed_copy_seconds, 2, tr("bytes copied to and from the host and NVMe"));
  add(tr("optimizer"), t.optimizer_seconds, 3,
      tr("parameters that are updated, at the rate of what updates them"));
  add(tr("pipeline"), t.bubble_seconds, 5, tr("waiting for other pipeline stages"));
  add(tr("idle"), t.idle_seconds, 4,
      t.host_decides() ? tr("the GPU waits for the host's Python calls: a slower host takes longer "
                            "in proportion")
                       : tr("kernel launches and waits that no work hides"));
  return out;
}

QString EstimateModels::phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return tr("forward pass");
    case Phase::backward:
      return tr("backward pass");
    case Phase::step:
      return tr("clipping and optimizer step");
    case Phase::prefill:
      return tr("prompt");
    case Phase::decode:
      return tr("new tokens");
    case Phase::generation:
      return tr("generation");
    case Phase::experience:
      return tr("scoring");
    case Phase::actor_training:
      return tr("actor's training");
    case Phase::critic_training:
      return tr("critic's training");
  }
  return {};
}

std::vector<Fact> EstimateModels::phases(const Answer& a) {
  const Estimate& e = *a.estimate;
  std::vector<Fact> out{{tr("model built"),
                         {},
                         bytes_text(e.model_bytes),
                         {},
                         Provenance::live(a, e.model_bytes, tr("after the model is built"))}};
  for (const Phase phase : e.run) {
    const PhaseBytes& held = e.phases[static_cast<std::size_t>(phase)];
    out.push_back({phase_name(phase),
                   bytes_text(held.peak),
                   bytes_text(held.end),
                   {},
                   Provenance::live(a, held.peak, tr("at the peak of this phase"))});
  }
  return out;
}

std::vector<Fact> EstimateModels::traffic(const Answer& a) {
  std::vector<Fact> out;
  for (const TrafficLine& line : a.estimate->traffic)
    out.push_back({words(line.what), words(report::words_of(line.link)),
                   bytes_text(line.bytes_per_step), text(format_count(line.count)),
                   Provenance::traffic(a.job->plan, line)});
  return out;
}

std::vector<Fact> EstimateModels::foundation(const Answer& a, const Calibration& calibration) {
  std::vector<Fact> out;
  for (const Statement& s : statements(*a.estimate, *a.job, calibration))
    out.push_back({standing_word(s.standing), statement_words(s.words), {}, {}, {}});
  return out;
}

QString EstimateModels::largest_consumer(const Answer& a) {
  const Category c = largest_category(*a.estimate);
  return tr("The largest part, %1, is %2.")
      .arg(words(report::words_of(c, a.job->plan.cluster.gpu.abilities)),
           words(what_it_is(c, *a.estimate, a.job->plan)));
}

RowsModel<Share>* EstimateModels::breakdown_model(QObject* parent) {
  using Model = RowsModel<Share>;
  return new Model(
      {{tr("what"),
        [](const Share& s, int role) {
          if (role == kValueRole) return QVariant(s.colour);
          return shown(s.name, s, role);
        }},
       {tr("bytes"),
        [](const Share& s, int role) {
          if (role == kValueRole) return QVariant(s.value);
          return shown(s.amount, s, role);
        },
        true},
       {tr("basis"), [](const Share& s, int role) { return shown(s.source, s, role); }}},
      parent);
}

RowsModel<Fact>* EstimateModels::fact_model(const QStringList& titles, bool numbers,
                                            QObject* parent) {
  using Model = RowsModel<Fact>;
  constexpr std::array kParts{&Fact::name, &Fact::first, &Fact::second, &Fact::third};
  std::vector<Model::Column> columns;
  for (qsizetype i = 0; i < titles.size(); ++i)
    columns.push_back({titles[i],
                       [part = kParts[static_cast<std::size_t>(i)]](const Fact& f, int role) {
                         return shown(f.*part, f, role);
                       },
                       numbers && i > 0});
  return new Model(std::move(columns), parent);
}

}  // namespace shardplan::gui
