#include "base/format.h"
#include "render/describe.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Source of_device(const Estimate& e) {
  Source source = Source::exact;
  for (const CategoryLine& line : e.breakdown)
    if (line.at_peak > 0) source = weaker(source, line.source);
  return source;
}

Text margin(const Estimate& e) {
  const std::int64_t spare = e.verdict.headroom_bytes;
  const Source source = of_device(e);
  return message(spare >= 0 ? "margin.spare" : "margin.over",
                 {{"bytes", bytes(spare >= 0 ? spare : -spare, source)},
                  {"upper", bytes(e.device.upper, source)}});
}

Cell of_available(const ResourceVerdict& r, Source source) {
  if (!r.available) return bytes(r.needed, source);
  return message("fact.of", {{"needed", bytes(r.needed, source)},
                             {"available", bytes(*r.available, Source::exact)}});
}

Text answer(const Estimate& e) {
  const Fit fit = overall(e.verdict);
  std::vector<Argument> arguments{{"needed", bytes(e.device.point, of_device(e))},
                                  {"upper", bytes(e.device.upper, of_device(e))},
                                  {"usable", bytes(e.usable_bytes, Source::exact)}};
  if (fit == Fit::fits) return message("answer.fits", std::move(arguments));
  const std::string limit(e.verdict.limited_by);
  if (limit == "gpu")
    return message(fit == Fit::tight ? "answer.tight" : "answer.does_not_fit",
                   std::move(arguments));
  const ResourceVerdict& r = limit == "host" ? e.verdict.host : e.verdict.nvme;
  return message("answer.does_not_fit_" + limit,
                 {{"needed", bytes(r.needed, Source::modelled)},
                  {"available", bytes(r.available.value_or(0), Source::exact)}});
}

Text title(const Job& job) {
  const Workload& w = job.plan.workload;
  const bool inference = w.kind == WorkKind::inference;
  std::vector<Argument> arguments{{"model", model_name(job.model)},
                                  {"cluster", cluster_words(job.plan.cluster)}};
  if (inference) {
    arguments.push_back({"batch", count(w.micro_batch)});
    arguments.push_back({"tokens", count(w.sequence_length + w.generation.new_tokens)});
  }
  if (job.rlhf)
    arguments.push_back(
        {"algorithm", message("algorithm." + std::string(name_of(job.rlhf->algorithm)))});
  return message(inference  ? "title.inference"
                 : job.rlhf ? "title.rlhf"
                            : "title.job",
                 std::move(arguments));
}

/// Until the first token, and after it.
void add_generation(Report& report, const GenerationTime& g, Source source) {
  report.facts.push_back(
      {"first_token", seconds(g.prefill_seconds, source),
       message("note.prompt", {{"rate", Quantity{g.prefill_tokens_per_second,
                                                 Unit::tokens_per_second, source}}})});
  report.facts.push_back({"throughput",
                          Quantity{g.decode_tokens_per_second, Unit::tokens_per_second, source},
                          message("note.all_sequences")});
}

}  // namespace

void add_answer(Report& report, const Findings& f) {
  const Estimate& e = f.estimate;
  report.title = title(f.job);
  report.verdict = overall(e.verdict);
  report.answer = answer(e);
  report.facts.push_back({"gpu", of_available(e.verdict.gpu, of_device(e)), margin(e)});
  if (e.verdict.host.needed > 0)
    report.facts.push_back(
        {"host", of_available(e.verdict.host, Source::modelled), message("note.each_node")});
  if (e.verdict.nvme.needed > 0)
    report.facts.push_back(
        {"nvme", of_available(e.verdict.nvme, Source::modelled), message("note.each_node")});
  if (e.time.step_seconds <= 0) return;
  if (e.time.generation) {
    add_generation(report, *e.time.generation, e.time.source);
    return;
  }
  report.facts.push_back(
      {f.job.rlhf ? "iteration" : "step", seconds(e.time.step_seconds, e.time.source),
       message("note.mfu", {{"mfu", Quantity{e.time.mfu, Unit::fraction, e.time.source}}})});
  Fact throughput{
      "throughput", Quantity{e.time.tokens_per_second, Unit::tokens_per_second, e.time.source}, {}};
  if (f.job.plan.cluster.world() > 1) throughput.note = message("note.all_gpus");
  report.facts.push_back(std::move(throughput));
}

}  // namespace shardplan::report
