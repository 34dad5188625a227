#include "load/ds_config/rules/zero/family.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::zero {
namespace {

std::vector<Edit> make_even(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_number()) return {};
  return {set_key(finding.key, integer_of(*value) - 1)};
}

}  // namespace

ConfigRule odd_allgather_bucket() {
  return {
      .rule =
          {
              .id = "ds.odd-allgather-bucket"_rule,
              .severity = Severity::error,
              .title = "An odd allgather_bucket_size",
              .explanation = "The bucket is split in two and must be even.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py",
              .advice = "Use an even number of elements.",
              .repair = make_even,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const int stage = s.values.stage();
            if ((stage == 1 || stage == 2) && s.values.integer(kAllgatherBucket) % 2 != 0)
              report(kAllgatherBucket, say("{} is odd", s.values.integer(kAllgatherBucket)),
                     "a multiple of 2");
          },
  };
}

}  // namespace shardplan::config_rules::zero
