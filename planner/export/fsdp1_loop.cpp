#include "export/fsdp1_loop.h"

#include <fmt/format.h>

#include "export/trainer_file.h"
#include "options/tables.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {

void check_fsdp1_loop(const Plan& plan, std::string_view trainer) {
  if (plan.trainer != &default_trainer())
    refuse_export("trainer", fmt::format("{} runs a loop of its own", trainer), "loop");
  const std::string_view name = name_of(plan.framework.kind);
  if (name != "fsdp1" && name != "ddp" && name != "single")
    refuse_export("framework", fmt::format("{} does not run under {}", trainer, name),
                  "fsdp1 or ddp");
  if (plan.parallel.model_ranks() > 1 || plan.parallel.expert > 1)
    refuse_export("parallel", fmt::format("{} files are written for data parallelism", trainer),
                  "no degrees, or --as job");
}

std::string amp_word(const Plan& plan, std::string_view trainer) {
  const std::string& name = plan.precision.name;
  if (name == "fp32") return name;
  if (name == "bf16-autocast" || name == "fp16-autocast") return "amp_" + name.substr(0, 4);
  refuse_export("precision", fmt::format("{} is none of {}'s", name, trainer),
                "bf16-autocast, fp16-autocast or fp32");
}

std::string upper_word(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

Json compile_block(const Plan& plan) {
  if (plan.compile->mode == CompileMode::usual) return Json{{"fullgraph", false}};
  Json said;
  write_options(said, compile_table(), plan);
  return Json{{"mode", said.at("mode")}};
}

}  // namespace shardplan
