#include "load/engine.h"

#include <fmt/format.h>

#include "base/format.h"
#include "load/engine_degree.h"
#include "load/options.h"
#include "options/tables.h"

namespace shardplan {
namespace {

void check_block(const ObjectReader& o, const RolloutEngine& engine) {
  const std::int64_t step = engine.engine->block_step;
  if (engine.block_tokens % step == 0) return;
  o.fail("block_size",
         say("{} tokens: {} has blocks of a multiple of {}", engine.block_tokens,
             engine.engine->words, step),
         say("a multiple of {}", step));
}

}  // namespace

std::optional<RolloutEngine> read_engine(ObjectReader& workload, std::string_view key,
                                         const OptionTable<RolloutEngine>& table) {
  auto o = workload.object(std::string(key));
  if (!o) return std::nullopt;
  RolloutEngine engine;
  engine.engine =
      kEngines[static_cast<std::size_t>(read_as<int>(*o, info_of(table, "engine")).value_or(0))];
  engine.block_tokens = engine.engine->block_tokens;
  engine.utilization = 0;  // as the next two: the GPU decides
  engine.sequences = engine.batched_tokens = 0;
  read_options(*o, table, engine);
  check_block(*o, engine);
  engine.model_length = read_as<std::int64_t>(*o, info_of(table, "max_model_length")).value_or(0);
  o->finish();
  return engine;
}

void check_longest(ObjectReader& workload, std::string_view key, const RolloutEngine& engine,
                   std::int64_t answer) {
  if (engine.longest_answer == 0 || engine.longest_answer >= answer) return;
  workload.fail(fmt::format("{}.longest_answer", key),
                fmt::format("{} tokens, and answers have {} in the mean (new_tokens)",
                            engine.longest_answer, answer),
                fmt::format("at least {}", answer));
}

void fit_length(ObjectReader& workload, std::string_view key, RolloutEngine& engine,
                std::int64_t sequence) {
  if (engine.model_length == 0) engine.model_length = sequence;
  if (engine.model_length >= sequence) return;
  workload.fail(
      fmt::format("{}.max_model_length", key),
      fmt::format("{} holds no prompt and answer of {} tokens", engine.model_length, sequence),
      fmt::format("at least {}", sequence));
}

namespace {

void check_degree(ObjectReader& job, const Model& model, const Plan& plan) {
  const EngineGpus gpus{.most = plan.cluster.gpus_per_node, .shared = plan.cluster.world()};
  const RolloutEngine& engine = *plan.workload.generation.engine;
  if (const auto problem = engine_degree_problem(engine, model, plan, gpus))
    job.fail("workload.engine.tensor_parallel", problem->message, problem->expected);
}

/// All GPUs of an engine have all of its tokens, or else they divide the experts, too: attention
/// whose sequences are divided is not modelled.
void check_experts(ObjectReader& job, const Model& model, const RolloutEngine& engine) {
  constexpr const char* kKey = "workload.engine.expert_parallel";
  const std::int64_t ranks = engine.expert_parallel;
  if (ranks == 1) return;
  if (ranks != engine.tensor_parallel)
    job.fail(kKey,
             fmt::format("{} GPUs divide the experts, and {} (tensor_parallel) the layers", ranks,
                         engine.tensor_parallel),
             engine.tensor_parallel == 1 ? fmt::format("1, or tensor_parallel {}", ranks)
                                         : fmt::format("1 or {}", engine.tensor_parallel));
  if (const auto problem = experts_problem(engine, model))
    job.fail(kKey, problem->message, problem->expected);
}

}  // namespace

void check_serving(ObjectReader& job, const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  const Generation& g = w.generation;
  check_degree(job, model, plan);
  check_experts(job, model, *g.engine);
  if (g.shared_prefix >= w.sequence_length)
    job.fail(
        "workload.shared_prefix",
        fmt::format("{} tokens are the whole prompt of {}", g.shared_prefix, w.sequence_length),
        "fewer: the last tokens of a prompt are its own");
  if (g.engine->batched_tokens < g.engine->sequences)
    job.fail("workload.engine.max_num_batched_tokens",
             fmt::format("{} is less than max_num_seqs, {}: each sequence takes a token of a pass",
                         g.engine->batched_tokens, g.engine->sequences),
             fmt::format("at least {}", g.engine->sequences));
}

}  // namespace shardplan
