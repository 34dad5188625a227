#include "export/carried.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "export/trainer_file.h"
#include "frameworks/registry.h"
#include "import/import.h"
#include "load/hardware.h"
#include "options/tables.h"
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
constexpr std::array<std::string_view, 8> kElsewhere{
    "model",           "cluster",      "tokens",          "lengths",
    "launch_blocking", "prepare_kbit", "sync_each_batch", "trainer"};

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

std::optional<Difference> difference(const Plan& planned, const Plan& heard) {
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
  if (planned.compile && heard.compile) c.table(compile_table(), planned, heard);
  c.table(checkpointing_table(), planned, heard);
  return c.found();
}

/// The plan of the file alone, beside the model and the machine.
Plan heard_plan(const ExportedFile& file, const Json& asked, const HardwareCatalog& hardware) {
  const Json given{{"model", asked.at("model")}, {"cluster", asked.at("cluster")}};
  importing::Imported imported = importing::import_documents(
      importing::parse_documents(file.text, file.name), std::string(file.format), given);
  imported.job.update(given);
  return load_job(imported.job, file.name, {.hardware = &hardware}).plan;
}

}  // namespace

void check_carried(const ExportedFile& file, const Json& asked, const Job& job) {
  const HardwareCatalog hardware = load_hardware_catalog();
  const Plan heard = heard_plan(file, asked, hardware);
  Plan planned = job.plan;
  const TrainerDescription& runs = *heard.trainer;
  if (planned.trainer == &default_trainer()) planned.trainer = &runs;
  if (planned.trainer != &runs)
    refuse_export("trainer", say("{} is not what runs {}", planned.trainer->name, file.name),
                  runs.name);
  const auto found = difference(planned, heard);
  if (!found) return;
  const std::string instead = found->heard.is_null() ? "none" : found->heard.dump();
  refuse_export(found->field,
                say("{} cannot be said in {}, which would train with {}", found->planned.dump(),
                    file.name, instead),
                say("{}, another --as, or --as job", instead));
}

}  // namespace shardplan
