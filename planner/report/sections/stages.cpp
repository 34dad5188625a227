#include "lowering/inference/generate.h"
#include "render/describe.h"
#include "render/estimate_text.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Cell bytes_or_nothing(std::int64_t n, Source source) {
  return n == 0 ? Cell() : Cell(bytes(n, source));
}

/// Which columns a kind of job has beside the common ones.
const char* meaning_of(const Job& job) {
  if (job.rlhf) return "stages.rlhf";
  if (job.plan.workload.kind == WorkKind::inference) return "stages.inference";
  return job.plan.parallel.only_data() ? "stages.meaning" : "stages.divided";
}

Row generation_row(const std::string& id, const Alternative& a, const Model& model) {
  const Estimate& e = a.estimate;
  const auto& g = e.time.generation;
  const auto rate = [&](double x) {
    return Cell(Quantity{x, Unit::tokens_per_second, e.time.source});
  };
  return {id,
          {Phrase{a.name}, words_of(overall(e.verdict)), bytes(e.device.point, Source::modelled),
           bytes(e.device.upper, Source::modelled),
           bytes_or_nothing(e.breakdown[index_of(Category::parameters)].resident,
                            e.breakdown[index_of(Category::parameters)].source),
           bytes_or_nothing(full_cache_bytes(model, a.plan),
                            e.breakdown[index_of(Category::kv_cache)].source),
           bytes_or_nothing(e.host_per_node.total(), Source::modelled),
           g ? Cell(seconds(g->prefill_seconds, e.time.source)) : Cell(),
           g ? rate(g->decode_tokens_per_second) : Cell()},
          {},
          a.is_current};
}

std::vector<Column> columns_of(const Job& job) {
  std::vector<Column> columns{{"plan"}, {"verdict"}, {"gpu_needed", true}, {"upper", true}};
  const auto add = [&](std::initializer_list<const char*> ids) {
    for (const char* id : ids) columns.push_back({id, true});
  };
  if (job.plan.workload.kind == WorkKind::inference)
    add({"weights", "cache", "host_needed", "first_token", "throughput"});
  else
    add({"states", "host_needed", "nvme_needed", "sent", "step_time", "step_error"});
  return columns;
}

Row row(const std::string& id, const Alternative& a) {
  const Estimate& e = a.estimate;
  return {id,
          {Phrase{a.name}, words_of(overall(e.verdict)), bytes(e.device.point, Source::modelled),
           bytes(e.device.upper, Source::modelled), bytes(model_states(e), model_states_source(e)),
           bytes_or_nothing(e.host_per_node.total(), Source::modelled),
           bytes_or_nothing(e.host_per_node.nvme, Source::modelled),
           bytes_or_nothing(sent(e, LinkKind::gpu), Source::modelled),
           e.time.step_seconds > 0 ? Cell(seconds(e.time.step_seconds, e.time.source)) : Cell(),
           e.time.step_seconds > 0 ? error_cell(e.time.error) : Cell()},
          {},
          a.is_current};
}

}  // namespace

Section stages_section(const Findings& f) {
  const bool inference = f.job.plan.workload.kind == WorkKind::inference;
  Table table{"stages", message("table.stages"), columns_of(f.job), {}};
  Bars bars;
  std::vector<CategoryBytes> all;
  for (std::size_t i = 0; i < f.alternatives.size(); ++i) {
    const Alternative& a = f.alternatives[i];
    const std::string id = "plan_" + std::to_string(i + 1);
    table.rows.push_back(inference ? generation_row(id, a, f.job.model) : row(id, a));
    Bar bar{Phrase{a.name},
            {},
            static_cast<double>(a.estimate.device.upper),
            bytes(a.estimate.device.point, Source::modelled),
            a.is_current};
    for (const CategoryLine& line : a.estimate.breakdown)
      if (line.at_peak > 0)
        bar.parts.emplace_back(color_of(line.category), static_cast<double>(line.at_peak));
    bars.bars.push_back(std::move(bar));
    all.push_back(at_peak(a.estimate));
  }
  bars.limit = static_cast<double>(f.estimate.usable_bytes);
  bars.limit_label =
      message("figure.usable", {{"bytes", bytes(f.estimate.usable_bytes, Source::exact)}});
  bars.legend = legend_of(all, f.job.plan.cluster.gpu.abilities);
  return {"stages",
          {Paragraph{message(meaning_of(f.job))},
           Chart{"stages", message("figure.stages"), message("figure.stages_description"),
                 std::move(bars)},
           std::move(table)}};
}

}  // namespace shardplan::report
