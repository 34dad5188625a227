#include "lint/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "json/positions.h"
#include "json/python_json.h"
#include "json/reader.h"
#include "lint/registry.h"
#include "lint/rules/accelerate/family.h"
#include "lint/rules/document/family.h"
#include "lint/rules/memory/family.h"
#include "lint/rules/trainer/family.h"
#include "load/cluster.h"
#include "load/ds_config/document.h"
#include "load/ds_config/version.h"
#include "load/model.h"
#include "load/precision.h"
#include "options/words.h"

namespace shardplan {
namespace {

/// The ds_config, read as the program reads it that it is for.
struct ConfigRead {
  Json document;
  KeyPositions positions;
  bool readable = false;
};

/// The findings of every file that takes part.
struct LintFindings {
  DsFindings config;
  DsFindings accelerate;
  DsFindings arguments;
};

class Linter {
 public:
  explicit Linter(const LintRequest& request)
      : request_(request),
        findings_{DsFindings(config_file(request)),
                  DsFindings(request.accelerate ? request.accelerate->file : ""),
                  DsFindings(request.arguments ? request.arguments->file : "")} {}

  LintReport run() {
    read_companions();
    read_config();
    read_machine();
    if (config_.readable) check();
    collect();
    return std::move(report_);
  }

 private:
  static std::string config_file(const LintRequest& request) {
    if (request.config) return request.config->file;
    return (request.accelerate ? request.accelerate->file : "") + " (its ds_config)";
  }

  /// A file that cannot be read is a finding, if a rule stands for it.
  void note_unreadable(const InputError& error, DsFindings& findings) {
    const Diagnostic& d = error.diagnostic();
    if (find_rule(d.rule) == nullptr) throw error;
    unreadable_.push_back(d);
    unreadable_.back().file = findings.file();
  }

  void read_companions() {
    if (request_.accelerate) {
      const SourceText& source = *request_.accelerate;
      try {
        accelerate_ = read_accelerate(source.text, source.file);
        check_rules(lint_rules::accelerate::of_file(), *accelerate_, findings_.accelerate);
      } catch (const InputError& e) {
        note_unreadable(e, findings_.accelerate);
      }
    }
    if (request_.arguments) {
      const SourceText& source = *request_.arguments;
      try {
        arguments_ = read_training_arguments(source.text, source.file);
        check_rules(lint_rules::trainer::of_file(), *arguments_, findings_.arguments);
      } catch (const InputError& e) {
        note_unreadable(e, findings_.arguments);
      }
    }
  }

  void read_config() {
    if (!request_.config) {
      if (!accelerate_) return;
      config_.document = plugin_ds_config(*accelerate_);
      config_.readable = true;
      return;
    }
    const SourceText& source = *request_.config;
    config_.positions = find_positions(source.text);
    try {
      DsDocument read = read_ds_document(source.text, source.file, said_resolver());
      config_.document = std::move(read.json);
      config_.readable = true;
      check_rules(lint_rules::document::of_text(), TextSubject{read.text}, findings_.config);
    } catch (const InputError& e) {
      note_unreadable(e, findings_.config);
    }
  }

  const Json* job_key(std::string_view path) const { return value_at(request_.job, path); }

  void read_machine() {
    const std::string file = "<command line>";
    if (const Json* cluster = job_key("cluster"))
      cluster_ = load_cluster(*cluster, file, "cluster", *request_.hardware);
    if (const Json* model = job_key("model"))
      model_ = load_model(*model, {file, "model", request_.directory}, {});
  }

  /// Who fills in "auto", where a flag or another file says so.
  std::optional<AutoResolver> said_resolver() const {
    if (const Json* said = job_key("framework.auto"); said != nullptr && said->is_string()) {
      if (const NamedValue* choice = find_choice(kAutoResolvers, said->get<std::string>()))
        return static_cast<AutoResolver>(choice->value);
      throw InputError({.file = "<command line>",
                        .key = "--auto",
                        .message = "found " + describe(*said),
                        .expected = in_words(kAutoResolvers)});
    }
    if (request_.arguments) return AutoResolver::hf_trainer;
    if (request_.accelerate) return AutoResolver::accelerate;
    return std::nullopt;
  }

  DsConfigContext context() const {
    DsConfigContext c;
    const std::optional<AutoResolver> said = said_resolver();
    c.auto_resolver = said.value_or(usual_resolver(config_.document));
    c.resolver_guessed = !said && c.auto_resolver != AutoResolver::none;
    if (const Json* version = job_key("framework.version")) {
      const auto parsed = version->is_string()
                              ? parse_deepspeed_version(version->get<std::string>())
                              : std::nullopt;
      if (!parsed)
        throw InputError({.file = "<command line>",
                          .key = "--deepspeed-version",
                          .message = "found " + describe(*version),
                          .expected = "a version such as 0.19.6"});
      c.version = *parsed;
    }
    if (cluster_)
      c.world_size = cluster_->world();
    else if (accelerate_ && accelerate_->processes && *accelerate_->processes > 0)
      c.world_size = accelerate_->processes;
    if (model_ && model_->facts.hidden > 0) c.hidden_size = model_->facts.hidden;
    if (arguments_) {
      c.trainer = arguments_->values;
      c.trainer_given = true;
      c.micro_batch = arguments_->micro_batch;
    } else if (request_.job.contains("precision")) {  // as a job with this ds_config takes "auto"
      ObjectReader job(request_.job, "<command line>");
      const DType compute = load_precision(job, "bf16-master").compute;
      c.trainer.bf16 = compute == DType::bf16;
      c.trainer.fp16 = compute == DType::f16;
    } else if (accelerate_ && accelerate_->mixed_precision) {
      c.trainer.bf16 = *accelerate_->mixed_precision == "bf16";
      c.trainer.fp16 = *accelerate_->mixed_precision == "fp16";
    }
    const auto number = [&](std::string_view path, std::optional<std::int64_t>& out) {
      const Json* value = job_key(path);
      if (value != nullptr && value->is_number_integer()) out = value->get<std::int64_t>();
    };
    number("workload.micro_batch", c.micro_batch);
    number("workload.gradient_accumulation", c.gradient_accumulation);
    std::optional<std::int64_t> stages;
    number("parallel.pipeline", stages);
    c.pipeline_parallel = std::max<std::int64_t>(1, stages.value_or(1));
    // A batch is shared by the ranks of one stage (PipelineModule's grid is the mpu).
    if (c.world_size && *c.world_size % c.pipeline_parallel == 0)
      *c.world_size /= c.pipeline_parallel;
    return c;
  }

  void check() {
    const DsConfigContext context = this->context();
    const DsConfigResult result =
        check_ds_config(config_.document, findings_.config.file(), context);
    report_.autos = result.autos;
    report_.resolver = context.auto_resolver;
    report_.version = context.version;
    found_by_reader_ = result.diagnostics;
    LintSubject subject{findings_.config.file(), config_.document, result,
                        DsValues(result.checked, context.version), context};
    subject.version_given = job_key("framework.version") != nullptr;
    if (accelerate_) subject.accelerate = &*accelerate_;
    if (arguments_) subject.arguments = &*arguments_;
    if (model_) subject.model = &*model_;
    if (cluster_) subject.cluster = &*cluster_;
    const std::optional<PricedJob> priced = price(result);
    if (priced) subject.priced = &*priced;
    look_for_rules(subject);
    if (priced) describe_costs(*priced, subject.values);
  }

  DsFindings& findings_of(const Rule& rule) {
    switch (rule.file) {
      case RuleFile::accelerate:
        return findings_.accelerate;
      case RuleFile::arguments:
        return findings_.arguments;
      case RuleFile::ds_config:
        break;
    }
    return findings_.config;
  }

  void look_for_rules(const LintSubject& subject) {
    for (const RuleFamily& family : rule_families()) {
      for (const LintRule& r : family.looked_for)
        r.check(subject, Report(r.rule, findings_of(r.rule)));
      if (subject.priced == nullptr) continue;
      const PricedSubject priced{*subject.priced, subject.values};
      for (const PricedRule& r : family.priced)
        r.check(priced, Report(r.rule, findings_of(r.rule)));
    }
  }

  /// A warm-up that is "auto" is none unless the trainer's arguments say one, and DeepSpeed refuses
  /// none. The trainer will have to say it; no byte and no second hangs on it.
  static Json priced_config(const DsConfigResult& result) {
    const Json::json_pointer warmup("/scheduler/params/warmup_num_steps");
    Json config = result.checked;
    for (const ResolvedAuto& value : result.autos)
      if (value.path == "scheduler.params.warmup_num_steps" && config.contains(warmup))
        config.at(warmup.parent_pointer()).erase(warmup.back());
    return config;
  }

  std::optional<PricedJob> price(const DsConfigResult& result) {
    if (!model_ || !cluster_) {
      report_.not_priced = "give --model and --gpus to see what each key costs";
      return std::nullopt;
    }
    const bool broken =
        std::any_of(result.diagnostics.begin(), result.diagnostics.end(),
                    [](const Diagnostic& d) { return d.severity == Severity::error; });
    if (broken) {
      report_.not_priced = "keys are not priced while the file has errors";
      return std::nullopt;
    }
    Json job = request_.job;
    if (!job.contains("checkpointing")) {
      const bool full = !arguments_ || arguments_->gradient_checkpointing;
      job["checkpointing"] = full ? "full" : "none";
      if (!arguments_) report_.assumed.emplace_back("checkpointing: full");
    }
    try {
      return PricedJob(std::move(job), "<command line>", priced_config(result),
                       {request_.hardware, request_.directory}, *request_.calibration);
    } catch (
        const InputError& e) {  // what the memory model does not know, or flags that contradict
      report_.not_priced = say("not estimated: {}", e.what());
    } catch (const OverflowError& e) {
      report_.not_priced = say("not estimated: {}", e.what());
    }
    return std::nullopt;
  }

  void describe_costs(const PricedJob& job, const DsValues& values) {
    report_.now = Priced{job.estimate(), job.price()};
    report_.subject = fmt::format("{} on {}", job.job().model.facts.name, cluster_->label);
    report_.assumed.insert(report_.assumed.end(), job.job().assumed.begin(),
                           job.job().assumed.end());
    report_.costs = price_keys(job, values);
    for (const KeyCost& cost : report_.costs)
      check_rules(lint_rules::memory::of_costs(), cost, findings_.config);
  }

  /// The place of a finding in its own file.
  TextPosition place(const Diagnostic& d) const {
    if (d.position.known()) return d.position;
    if (accelerate_ && d.file == accelerate_->file) return accelerate_->positions.find(d.key);
    if (arguments_ && d.file == arguments_->file) return arguments_->positions.find(d.key);
    if (d.rule == "json.duplicate-key"_rule && config_.positions.repeated().known())
      return config_.positions.repeated();
    return config_.positions.find(d.key);
  }

  void add(const Diagnostic& diagnostic) {
    LintFinding finding;
    finding.diagnostic = diagnostic;
    finding.diagnostic.position = place(diagnostic);
    finding.rule = find_rule(diagnostic.rule);
    if (finding.rule == nullptr)
      throw std::logic_error("a finding without a rule: " + to_string(diagnostic));
    const bool in_config = diagnostic.file == findings_.config.file();
    if (in_config && config_.readable && finding.rule->repair != nullptr)
      finding.edits = finding.rule->repair(diagnostic, config_.document);
    report_.findings.push_back(std::move(finding));
  }

  void collect() {
    for (const std::vector<Diagnostic>* list :
         std::initializer_list<const std::vector<Diagnostic>*>{
             &unreadable_, &found_by_reader_, &findings_.config.all(), &findings_.arguments.all(),
             &findings_.accelerate.all()})
      for (const Diagnostic& d : *list) add(d);
    const auto rank = [&](const Diagnostic& d) {
      return d.file == findings_.config.file() ? 0 : d.file == findings_.arguments.file() ? 1 : 2;
    };
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [&](const LintFinding& a, const LintFinding& b) {
                       const Diagnostic &x = a.diagnostic, &y = b.diagnostic;
                       return std::tuple(rank(x), x.position.line, x.position.column) <
                              std::tuple(rank(y), y.position.line, y.position.column);
                     });
    if (!config_.readable) return;
    report_.fixed = config_.document;
    for (const LintFinding& finding : report_.findings) apply(finding.edits, report_.fixed);
  }

  const LintRequest& request_;
  LintFindings findings_;
  std::vector<Diagnostic> unreadable_, found_by_reader_;
  ConfigRead config_;
  std::optional<AccelerateConfig> accelerate_;
  std::optional<TrainingArguments> arguments_;
  std::optional<Model> model_;
  std::optional<Cluster> cluster_;
  LintReport report_;
};

}  // namespace

int LintReport::count(Severity severity) const {
  return static_cast<int>(std::count_if(
      findings.begin(), findings.end(),
      [&](const LintFinding& finding) { return finding.diagnostic.severity == severity; }));
}

LintReport lint(const LintRequest& request) {
  return Linter(request).run();
}

namespace {

/// The first error of `after` that `before` does not have, or nullptr.
const Diagnostic* new_error(const LintReport& before, const LintReport& after) {
  for (const LintFinding& finding : after.findings) {
    const Diagnostic& d = finding.diagnostic;
    const bool known = std::ranges::any_of(before.findings, [&](const LintFinding& old) {
      return old.diagnostic.rule == d.rule && old.diagnostic.key == d.key;
    });
    if (d.severity == Severity::error && !known) return &d;
  }
  return nullptr;
}

}  // namespace

Json repaired(const LintRequest& request, const LintReport& first) {
  constexpr int kMostRounds = 8;  // a repair that another one undoes would go on for ever
  LintRequest again = request;
  Json now = first.fixed;
  for (int round = 0; round < kMostRounds && !now.is_null() && again.config; ++round) {
    again.config->text = dump_python_json(now);
    const LintReport report = lint(again);
    const bool worse = report.count(Severity::error) > first.count(Severity::error);
    if (const Diagnostic* error = worse ? new_error(first, report) : nullptr)
      throw InputError({.file = error->file,
                        .key = error->key,
                        .message = say("the repairs would bring up {} ({}): nothing was written",
                                       error->message, error->rule.text()),
                        .expected = "a correction by hand"});
    if (report.fixed.is_null() || report.fixed == now) break;
    now = report.fixed;
  }
  return now;
}

}  // namespace shardplan
