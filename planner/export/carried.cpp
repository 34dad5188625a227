#include "export/carried.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "export/trainer_file.h"
#include "frameworks/registry.h"
#include "import/import.h"
#include "kernels/registry.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "options/tables.h"
#include "questions/estimate_job.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// An option that a file's import has otherwise than the plan.
struct Difference {
  std::string field;
  Json planned, heard;
};

/// Left to the data, to the environment or to who asks; and what Plan's own functions resolve.
constexpr std::array<std::string_view, 9> kElsewhere{
    "model",        "cluster",         "tokens",  "lengths", "launch_blocking",
    "prepare_kbit", "sync_each_batch", "trainer", "kernels"};

/// What holds of these where nothing is said.
OptionValue left_open(std::string_view key, const Plan& plan) {
  if (key == "reduce_dtype") return static_cast<std::int64_t>(plan.precision.compute);
  if (key == "find_unused_parameters") return plan.trainer->finds_unused;
  return {};
}

class Comparison {
 public:
  Comparison(const Plan& planned, const Plan& heard) : planned_(planned), heard_(heard) {}

  template <typename Root>
  void table(const OptionTable<Root>& options, const Root& planned, const Root& heard) {
    for (const Option<Root>& option : options.options) {
      if (found_ || option.access.get == nullptr) continue;
      if (std::ranges::find(kElsewhere, option.info.key) != kElsewhere.end()) continue;
      OptionValue a = option.access.get(planned), b = option.access.get(heard);
      if (a.index() == 0) a = left_open(option.info.key, planned_);
      if (b.index() == 0) b = left_open(option.info.key, heard_);
      if (a != b)
        differs(options.path.empty() ? std::string(option.info.key)
                                     : fmt::format("{}.{}", options.path, option.info.key),
                json_of(option.info, a), json_of(option.info, b));
    }
  }

  void differs(std::string field, Json planned, Json heard) {
    if (!found_) found_ = Difference{std::move(field), std::move(planned), std::move(heard)};
  }

  const std::optional<Difference>& found() const { return found_; }

 private:
  const Plan& planned_;
  const Plan& heard_;
  std::optional<Difference> found_;
};

void compare_work(Comparison& c, const Workload& planned, const Workload& heard) {
  c.table(training_table(), planned, heard);
  if (planned.lora.has_value() != heard.lora.has_value())
    return c.differs("workload.method", planned.lora ? "lora" : "full",
                     heard.lora ? "lora" : "full");
  if (planned.lora) c.table(lora_table(), planned, heard);
}

/// All that Liger patches, or those of a list: trainers have a word for the one or the other.
std::uint32_t kernel_names(const KernelRequest& kernels, std::string_view model_type) {
  if (!kernels.patches) return kernels.names;
  const LigerPatch* patch = find_liger_patch(model_type);
  return patch == nullptr ? 0 : patch->usual;
}

std::optional<Difference> difference(const Plan& planned, const Plan& heard,
                                     std::string_view model_type) {
  Comparison c(planned, heard);
  if (planned.framework.kind != heard.framework.kind)
    c.differs("framework", name_of(planned.framework.kind), name_of(heard.framework.kind));
  else
    c.table(*traits_of(planned).options.get(), planned.framework, heard.framework);
  if (planned.syncs_each_batch() != heard.syncs_each_batch())
    c.differs("framework.sync_each_batch", planned.syncs_each_batch(), heard.syncs_each_batch());
  c.table(precision_table(), planned.precision, heard.precision);
  compare_work(c, planned.workload, heard.workload);
  if (planned.prepares_kbit() != heard.prepares_kbit())
    c.differs("workload.lora.prepare_kbit", planned.prepares_kbit(), heard.prepares_kbit());
  c.table(parallel_table(), planned, heard);
  c.table(optimizer_table(), planned.optimizer, heard.optimizer);
  c.table(job_option_table(), planned, heard);
  const std::uint32_t wanted = kernel_names(planned.kernels, model_type);
  if (const std::uint32_t got = kernel_names(heard.kernels, model_type); got != wanted)
    c.differs("kernels", planned.kernels.patches ? "liger" : "this list",
              got == 0 ? "torch" : "others of Liger's");
  if (planned.compile && heard.compile) c.table(compile_table(), planned, heard);
  c.table(checkpointing_table(), planned, heard);
  return c.found();
}

struct HeardJob {
  Json asked;
  Job job;
};

/// The job of the file alone, beside the machine and the model that trains: a file of several
/// models names each of them.
HeardJob heard_job(const ExportedFile& file, const Json& asked, const HardwareCatalog& hardware,
                   bool several) {
  Json given{{"cluster", asked.at("cluster")}};
  if (!several) given["model"] = asked.at("model");
  importing::Imported imported = importing::import_documents(
      importing::parse_documents(file.text, file.name), std::string(file.format), given);
  imported.job.update(given);
  Job job = load_job(imported.job, file.name, {.hardware = &hardware});
  return {std::move(imported.job), std::move(job)};
}

/// Two trainers can run a plan alike.
bool run_alike(const Job& planned, const Job& heard) {
  const Calibration calibration = load_calibration();
  const Estimate a = estimate_job(planned, calibration);
  const Estimate b = estimate_job(heard, calibration);
  return a.device.point == b.device.point && a.time.step_seconds == b.time.step_seconds;
}

/// The first field of a workload that both say otherwise, or else the first that one of them says
/// alone; none where they say the same.
std::optional<Difference> first_apart(const Json& planned, const Json& heard) {
  const Json a = planned.value("workload", Json::object()).flatten();
  const Json b = heard.value("workload", Json::object()).flatten();
  const auto apart = [](std::string key, const Json& one, const Json& other) {
    std::ranges::replace(key, '/', '.');
    return Difference{"workload" + key, one, other};
  };
  for (const auto& [key, value] : a.items())
    if (b.contains(key) && b.at(key) != value) return apart(key, value, b.at(key));
  for (const auto& [key, value] : a.items())
    if (!b.contains(key)) return apart(key, value, nullptr);
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) return apart(key, nullptr, value);
  return std::nullopt;
}

/// What of the first model's plan cannot be said: a field and what the file would train with.
void refuse_field(const Difference& found, const ExportedFile& file) {
  const auto word = [](const Json& value) { return value.is_null() ? "none" : value.dump(); };
  const std::string instead = word(found.heard);
  refuse_export(found.field,
                say("{} cannot be said in {}, which would train with {}", word(found.planned),
                    file.name, instead),
                say("{}, another --as, or --as job", instead));
}

/// Models have options of their own: what counts is that all of them together run alike.
void check_models_carried(const ExportedFile& file, const Json& asked, const Job& planned,
                          const HeardJob& heard) {
  if (run_alike(planned, heard.job)) return;
  const auto plain = difference(planned.plan, heard.job.plan, planned.model.facts.model_type);
  const auto apart = first_apart(asked, heard.asked);
  const bool both = apart && !apart->planned.is_null() && !apart->heard.is_null();
  if (both || (apart && !plain)) refuse_field(*apart, file);
  if (plain) refuse_field(*plain, file);
  refuse_export("workload", say("{} would run another job than this one", file.name), "--as job");
}

}  // namespace

void check_carried(const ExportedFile& file, const Json& asked, const Job& job) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const HeardJob of_file = heard_job(file, asked, hardware, job.rlhf.has_value());
  if (job.rlhf) return check_models_carried(file, asked, job, of_file);
  const Plan& heard = of_file.job.plan;
  Plan planned = job.plan;
  const TrainerDescription& runs = *heard.trainer;
  planned.trainer = &runs;
  if (const auto found = difference(planned, heard, job.model.facts.model_type))
    refuse_field(*found, file);
  const TrainerDescription& asks = *job.plan.trainer;
  if (&asks != &runs && &asks != &default_trainer() && !run_alike(job, of_file.job))
    refuse_export("trainer", say("{} is not what runs {}", asks.name, file.name), runs.name);
}

}  // namespace shardplan
