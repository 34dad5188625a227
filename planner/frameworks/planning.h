// What the planner asks of a framework: its words, the files that run it, its place in searches,
// changes and comparisons. Each framework has one constant of this type in a folder of its own,
// and one row in registry.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/export.h"
#include "frameworks/required.h"
#include "frameworks/traits.h"
#include "questions/changes.h"
#include "questions/search/space.h"
#include "report/report.h"
#include "timing/rates.h"

namespace shardplan {

/// How launch.sh starts a training program.
struct Launch {
  std::string program;    ///< a comment on what PROGRAM.py is; "": any
  std::string notes;      ///< comments: what the program has to do that no argument says
  std::string arguments;  ///< shell lines that set what `run` names
  std::string run = "\"$program\" \"${arguments[@]}\" \"$@\"";
  std::string launcher;  ///< one of its own beside torchrun and srun: "deepspeed"; "": none
  std::string command;   ///< of that launcher
};

/// One way to shard that a search tries.
struct Strategy {
  std::string label;  ///< "FSDP2, not resharded"
  Framework framework;
};

/// What the framework cannot do on one axis of a search. Only its own plans are asked about.
struct FrameworkRule {
  std::string_view axis;  ///< Axis::name
  bool early;             ///< before the rules that hold for every framework
  AxisRule rule;
};

/// What a search was asked for, as far as rules depend on it.
struct RuleContext {
  const Plan& base;
  bool pipelines_asked = false;
};

/// The jobs that other programs' rules answer for (questions/peer_rules.h).
struct PeerJob {
  bool zero2 = false, zero3 = false;  ///< DeepSpeed's rules for stages 1 and 2, and for stage 3
  bool accelerate = false;            ///< accelerate's, which knows no sharding
  bool offloads_optimizer = false, offloads_parameters = false;
};

/// Rates that a framework's own steps are fitted to.
struct StepFit {
  std::string_view group;  ///< "steps under FSDP2"
  bool small_steps;        ///< those of the calibration's own runs; else recorded ones
  std::vector<double*> (*rates)(TimeRates&);
};

struct FrameworkPlanning {
  Required<FrameworkKind> kind;

  // ---- Words.
  /// "DeepSpeed ZeRO-3, optimizer on the host"
  Required<report::Text (*)(const Framework&)> words;
  /// What its records are grouped by: "deepspeed stage 3".
  Required<std::string (*)(const Plan&)> group;

  // ---- Files.
  /// A format that only it has; null without one.
  Required<const ExportFormat*> own_format;
  Required<std::vector<const ExportFormat*> (*)(const Plan&)> formats;
  /// Lines of accelerate's configuration: the kind of distribution, and what goes with it.
  Required<std::string (*)(const Plan&)> accelerate;
  Required<Launch (*)(const Job&)> launch;
  /// Writes its options into an exported job's `framework`.
  Required<void (*)(Json& framework, const Plan&)> write_options;
  /// Puts files that an exported job names into the job itself.
  Required<void (*)(Json& job, const Plan&)> inline_files;

  // ---- Searches.
  Required<bool> is_searched;
  /// Adds what is tried; `base` runs under any framework, `stages` are of ZeRO.
  Required<void (*)(std::vector<Strategy>&, const Plan& base, std::span<const std::int64_t> stages)>
      strategies;
  Required<std::vector<FrameworkRule> (*)(const RuleContext&)> rules;
  /// Brings its own options in line with a degree, a precision or an offload that was set. `base`
  /// is the job; `own`: the precision is the job's own.
  Required<void (*)(Plan&, Degree, const Plan& base)> take_degree;
  Required<void (*)(Plan&, const Plan& base, bool own)> take_precision;
  Required<void (*)(Plan&)> take_offloads;
  Required<bool> tries_offloads;  ///< whether a search of it alone has axes of offload
  Required<bool> can_offload;     ///< states can be kept off the GPU
  /// Whether a pipeline wants the model written for it.
  Required<bool> needs_pipeline_module;
  Required<std::span<const StageBalance>> balances;  ///< worth trying

  // ---- Changes and comparisons.
  /// Whether a stage of ZeRO is a change that its users can make.
  Required<bool> moves_to_zero;
  /// Whether adapters are a change that they can make: Megatron-LM's own programs have none.
  Required<bool> offers_adapters;
  /// Changes of its own that make a job need less: those that divide or gather less, and those
  /// that move states off the GPU.
  Required<void (*)(std::vector<Change>&, const Model&, const Plan&)> lighter;
  Required<void (*)(std::vector<Change>&, const Plan&)> offloads;
  Required<PeerJob (*)(const Plan&)> peers;

  // ---- Calibration.
  Required<const StepFit*> fit;  ///< null: its steps are not fitted
  Required<bool> fits_host;      ///< its steps show what the host takes, and nothing else
};

}  // namespace shardplan
