#include <fmt/format.h>

#include <algorithm>

#include "lowering/inference/generate.h"
#include "report/sections/sections.h"
#include "report/words.h"

namespace shardplan::report {
namespace {

Quantity rate(double tokens_per_second, Source source) {
  return {tokens_per_second, Unit::tokens_per_second, source};
}

/// What lives for the whole round, and how fast it goes.
Table round_table(const Findings& f) {
  const Estimate& e = f.estimate;
  const Workload& w = f.job.plan.workload;
  Table table{"generation", message("table.generation"), {{"what"}, {"value", true}}, {}};
  const auto add = [&](const char* id, const Quantity& value) {
    table.rows.push_back({id, {message(std::string("generation.") + id), value}});
  };
  const CategoryLine& parameters = e.breakdown[index_of(Category::parameters)];
  if (parameters.resident > 0) add("weights", bytes(parameters.resident, parameters.source));
  if (e.host_per_node.total() > 0)
    add("weights_on_host", bytes(e.host_per_node.total(), Source::modelled));
  const std::int64_t cache = full_cache_bytes(f.job.model, f.job.plan);
  if (cache > 0) {
    const std::int64_t tokens =
        checked_mul(w.micro_batch, w.sequence_length + w.generation.new_tokens);
    const Source source = e.breakdown[index_of(Category::kv_cache)].source;
    add("cache", bytes(cache, source));
    add("cache_of_token", bytes(cache / tokens, source));
  } else {
    add("workspace", bytes(e.breakdown[index_of(Category::workspace)].at_peak, Source::modelled));
  }
  if (!e.time.generation) return table;
  const GenerationTime& g = *e.time.generation;
  add("first_token", seconds(g.prefill_seconds, e.time.source));
  add("all_sequences", rate(g.decode_tokens_per_second, e.time.source));
  add("one_sequence",
      rate(g.decode_tokens_per_second / static_cast<double>(w.micro_batch), e.time.source));
  return table;
}

Row row(const ContextCapacity& c, Source cache, Source time) {
  Row out{"prompt_" + std::to_string(c.prompt_length),
          {count(c.prompt_length), count(c.context)},
          {},
          c.is_current};
  if (!c.batch) {
    out.cells.push_back(message("generation.none_fits"));
    out.cells.resize(5);
    return out;
  }
  out.cells.push_back(count(*c.batch, Source::modelled));
  out.cells.push_back(c.cache_bytes > 0 ? Cell(bytes(c.cache_bytes, cache)) : Cell());
  out.cells.push_back(c.tokens_per_second > 0 ? Cell(rate(c.tokens_per_second, time)) : Cell());
  return out;
}

}  // namespace

Section generation_section(const Findings& f) {
  Table capacity{"capacity",
                 message("table.capacity"),
                 {{"prompt", true},
                  {"context", true},
                  {"largest_batch", true},
                  {"cache", true},
                  {"throughput", true}},
                 {}};
  for (const ContextCapacity& c : f.capacities)
    capacity.rows.push_back(
        row(c, f.estimate.breakdown[index_of(Category::kv_cache)].source, f.estimate.time.source));
  return {"generation",
          {round_table(f), Paragraph{message("generation.capacity")}, std::move(capacity)}};
}

}  // namespace shardplan::report
