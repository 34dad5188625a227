#include "load/ds_config/load.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/checked.h"
#include "json/reader.h"
#include "load/ds_config/batch_triangle.h"
#include "load/ds_config/check.h"
#include "load/ds_config/deprecated.h"
#include "load/ds_config/findings.h"
#include "load/ds_config/options.h"
#include "load/ds_config/rules.h"
#include "load/ds_config/values.h"

namespace shardplan {

DsConfigResult check_ds_config(const Json& config, const std::string& file,
                               const DsConfigContext& context) {
  ObjectReader(config, file);  // an object, or an error
  DsFindings findings(file);
  DsConfigResult result;
  Json document = config;
  move_deprecated(document, findings);
  try {
    result.autos = resolve_autos(document, context, findings);
    document = check_keys(document, context.version, findings);
    const DsValues values(document, context.version);
    check_precision_rules(values, findings);
    check_zero_rules(values, context, findings);
    check_optimizer_rules(values, context, result.autos, findings);
    check_parallel_rules(values, context, findings);
    report_ignored_keys(values, findings);
    result.options =
        make_deepspeed_options(values, close_batch_triangle(values, context, findings));
  } catch (const OverflowError& e) {
    findings.error("ds.number-too-large"_rule, "", e.what());
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
