#include "models/serving_words.h"

#include <cmath>

#include "base/format.h"
#include "models/core_words.h"
#include "models/provenance.h"
#include "models/text.h"
#include "questions/cost.h"
#include "questions/serving.h"
#include "render/cost_text.h"

namespace shardplan::gui {
namespace {

QString whole(double number) {
  return text(format_count(std::llround(number)));
}

/// Tokens/s of one sequence: small numbers keep a digit.
QString rate(double per_second) {
  return per_second < 100 ? QString::number(per_second, 'g', 3) : whole(per_second);
}

}  // namespace

QString ServingWords::sequences(const ServingEstimate& s) {
  const QString many = text(format_count(s.sequences));
  QString limit = tr("%1 sequences at once, as many as the cache has room for").arg(many);
  if (s.limited_by != "cache")
    limit = (s.limited_by == "batch"
                 ? tr("%1 sequences at once, as asked; the cache has room for %2")
                 : tr("%1 sequences at once, the engine's limit; the cache has room for %2"))
                .arg(many, text(format_count(s.room)));
  return s.replicas > 1
             ? tr("%1; %2 engines side by side").arg(limit, text(format_count(s.replicas)))
             : limit;
}

QString ServingWords::cost(const Answer& a) {
  const Plan& plan = a.job->plan;
  const auto amount = dollars_per_million(plan, a.estimate->serving->tokens_per_second, {});
  if (!amount) return tr("; cost: the price of a node is not known");
  const auto list = cost_of(plan, a.estimate->time.step_seconds, {}).list;
  if (!list) return tr("; %1 per million new tokens").arg(text(money(*amount)));
  return tr("; $%1 per million new tokens at the list price of %2 (%3)")
      .arg(text(money(*amount)), text(list->machine), text(list->as_of));
}

QString ServingWords::rates(const Answer& a) {
  const ServingEstimate& s = *a.estimate->serving;
  if (s.sequences == 0) return tr("not one sequence has room in the cache");
  if (s.token_seconds <= 0)
    return tr("%1; pace not estimated: the GPU's rates are not known").arg(sequences(s));
  return tr("%1: %2 new tokens/s in all, %3 to each sequence; first token after about %4 on an "
            "idle engine, %5 on a full one")
             .arg(sequences(s), whole(s.tokens_per_second), rate(1 / s.token_seconds),
                  text(format_seconds(s.first_token_seconds)),
                  text(format_seconds(s.loaded_first_seconds))) +
         cost(a);
}

std::vector<Share> ServingWords::pass(const Estimate& e) {
  const EnginePassTime& p = e.serving->pass;
  std::vector<Share> out;
  const auto add = [&](const QString& name, double seconds, int colour, const QString& formula) {
    if (seconds > 0)
      out.push_back({name, text(format_seconds(seconds)), words(e.time.source),
                     Provenance::seconds(name, seconds, formula, e.time.source), seconds, colour});
  };
  add(tr("matrix products"), p.products, 0, tr("of all layers and the head, in one pass"));
  add(tr("attention"), p.attention, 3, tr("over the cached keys and values of all sequences"));
  add(tr("other kernels"), p.between, 2, tr("between the products, and choosing tokens"));
  add(tr("exchanges among GPUs"), p.exchanges, 1, tr("of the GPUs that share the layers"));
  add(tr("between passes"), p.host, 4, tr("what the engine itself takes"));
  return out;
}

}  // namespace shardplan::gui
