#include "load/ds_config/load.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/checked.h"
#include "json/reader.h"
#include "load/ds_config/batch_triangle.h"
#include "load/ds_config/deprecated.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/keys.h"
#include "load/ds_config/options.h"
#include "load/ds_config/rules/batch/family.h"
#include "load/ds_config/rules/keys/family.h"
#include "load/ds_config/rules/optimizer/family.h"
#include "load/ds_config/rules/parallel/family.h"
#include "load/ds_config/rules/precision/family.h"
#include "load/ds_config/rules/trainer/mismatch.h"
#include "load/ds_config/rules/unread/family.h"
#include "load/ds_config/rules/zero/family.h"
#include "load/ds_config/subject.h"

namespace shardplan {
namespace {

/// What DeepSpeed demands of several keys together, in the order in which it is checked.
constexpr std::span<const ConfigRule> (*kFamilies[])() = {
    config_rules::precision::all, config_rules::zero::all,   config_rules::optimizer::all,
    config_rules::parallel::all,  config_rules::unread::all, config_rules::batch::all};

}  // namespace

DsConfigResult check_ds_config(const Json& config, const std::string& file,
                               const DsConfigContext& context) {
  ObjectReader(config, file);  // an object, or an error
  DsFindings findings(file);
  DsConfigResult result;
  Json document = config;
  move_deprecated(document, findings);
  try {
    result.autos = resolve_autos(document, context, findings);
    if (context.auto_resolver == AutoResolver::hf_trainer)
      config_rules::trainer::compare_with_trainer(document, context, findings);
    document = check_keys(document, context.version, findings);
    const ConfigSubject subject{DsValues(document, context.version), context, result.autos};
    for (const auto family : kFamilies) check_rules(family(), subject, findings);
    result.options =
        make_deepspeed_options(subject.values, close_batch_triangle(subject.values, context));
  } catch (const OverflowError& e) {
    check_rules(config_rules::keys::of_overflow(), e, findings);
  }
  result.diagnostics = findings.all();
  result.checked = std::move(document);
  return result;
}

DsConfigResult load_ds_config(const Json& config, const std::string& file,
                              const DsConfigContext& context) {
  DsConfigResult result = check_ds_config(config, file, context);
  for (Diagnostic& diagnostic : result.diagnostics)
    if (diagnostic.severity == Severity::error) throw InputError(std::move(diagnostic));
  return result;
}

}  // namespace shardplan
