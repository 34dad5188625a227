#include <algorithm>

#include "lowering/rlhf/lower.h"
#include "render/estimate_text.h"
#include "report/sections/sections.h"
#include "report/words.h"
#include "save/estimate.h"

namespace shardplan::report {
namespace {

/// Each model, what is done with it, and what it keeps where.
Table models_table(const Findings& f) {
  Table table{"models",
              message("table.models"),
              {{"role"},
               {"model"},
               {"parameters", true},
               {"use"},
               {"framework"},
               {"idle"},
               {"keeps", true}},
              {}};
  const std::vector<RoleStates> all = role_states(*f.job.rlhf);
  for (const Role& role : f.job.rlhf->roles) {
    const auto states =
        std::find_if(all.begin(), all.end(), [&](const RoleStates& s) { return s.role == &role; });
    if (states == all.end()) continue;
    const char* use = !role.trains              ? "use.frozen"
                      : role.plan.workload.lora ? "use.lora"
                                                : "use.trained";
    table.rows.push_back(
        {std::string(name_of(role.kind)),
         {words_of(role.kind), model_name(role.model),
          Quantity{role.model.parameter_count(), Unit::parameters}, message(use),
          framework_words(role.plan.framework), message("idle." + std::string(name_of(role.idle))),
          bytes(states->bytes, model_states_source(f.estimate))}});
  }
  return table;
}

/// A phase of the iteration: which models compute, and which are on the GPU.
struct Turn {
  Phase phase;
  std::vector<const Role*> computing;
};

std::vector<Turn> turns_of(const std::vector<RlhfPart>& parts) {
  std::vector<Turn> turns;
  for (const RlhfPart& part : parts) {
    if (turns.empty() || turns.back().phase != part.phase) turns.push_back({part.phase, {}});
    turns.back().computing.push_back(part.role);
  }
  return turns;
}

/// All that stay, and those of the others that compute.
Cell present(const Rlhf& rlhf, const Turn& turn) {
  std::vector<Cell> names;
  for (const Role& role : rlhf.roles) {
    const auto computes = std::find(turn.computing.begin(), turn.computing.end(), &role);
    if (!role.idle_on_host() || computes != turn.computing.end())
      names.push_back(words_of(role.kind));
  }
  return joined(names);
}

/// The peak of a turn; a training step that is not part of a longer iteration has phases of its
/// own.
PhaseBytes memory_of(const Turn& turn, const Estimate& e) {
  if (turn.phase != Phase::step) return e.phases[static_cast<std::size_t>(turn.phase)];
  PhaseBytes whole;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::step}) {
    const PhaseBytes& bytes = e.phases[static_cast<std::size_t>(phase)];
    whole.peak = std::max(whole.peak, bytes.peak);
    whole.end = bytes.end;
  }
  return whole;
}

double seconds_of(const Turn& turn, const TimeEstimate& time) {
  for (const TimeEstimate::PhaseTime& phase : time.phases)
    if (phase.phase == turn.phase) return phase.seconds;
  return 0;
}

Table turns_table(const Findings& f) {
  const Rlhf& rlhf = *f.job.rlhf;
  const Estimate& e = f.estimate;
  Table table{"turns",
              message("table.turns"),
              {{"phase"},
               {"computing"},
               {"present"},
               {"turn_peak", true},
               {"turn_end", true},
               {"turn_time", true}},
              {}};
  const std::vector<RlhfPart> parts = rlhf_parts(rlhf);
  for (const Turn& turn : turns_of(parts)) {
    std::vector<Cell> computing;
    for (const Role* role : turn.computing) computing.push_back(words_of(role->kind));
    const PhaseBytes memory = memory_of(turn, e);
    const double time = seconds_of(turn, e.time);
    const bool peaks = memory.peak == e.phases[static_cast<std::size_t>(e.peak_phase)].peak;
    table.rows.push_back({std::string(name_of(turn.phase)),
                          {message("turn." + std::string(name_of(turn.phase))), joined(computing),
                           present(rlhf, turn), bytes(memory.peak, Source::modelled),
                           bytes(memory.end, Source::modelled),
                           time > 0 ? Cell(seconds(time, e.time.source)) : Cell()},
                          {},
                          peaks});
  }
  return table;
}

/// Those on GPUs of their own: what they need there, and what they do meanwhile.
Table apart_table(const Findings& f) {
  Table table{"models_apart",
              message("table.models_apart"),
              {{"role"},
               {"gpus", true},
               {"verdict"},
               {"needed", true},
               {"upper", true},
               {"available", true},
               {"scores", true},
               {"trains", true}},
              {}};
  for (std::size_t i = 0; i < f.estimate.apart.size(); ++i) {
    const ModelsApart& g = f.estimate.apart[i];
    std::vector<Cell> roles;
    for (const Role& role : f.job.rlhf->apart[i].roles) roles.push_back(words_of(role.kind));
    const auto time = [&](double value) {
      return value > 0 ? Cell(seconds(value, f.estimate.time.source)) : Cell();
    };
    table.rows.push_back(
        {g.names,
         {joined(roles), count(g.gpus, Source::exact), words_of(g.verdict.gpu.fit),
          bytes(g.device.point, Source::modelled), bytes(g.device.upper, Source::modelled),
          bytes(g.usable_bytes, Source::exact), time(g.scores_seconds), time(g.trains_seconds)}});
  }
  return table;
}

}  // namespace

Section models_section(const Findings& f) {
  Section section{"models",
                  {models_table(f), Paragraph{message("models.meaning")}, turns_table(f),
                   Paragraph{message("turns.meaning")}}};
  if (!f.estimate.apart.empty()) section.blocks.emplace_back(apart_table(f));
  return section;
}

}  // namespace shardplan::report
