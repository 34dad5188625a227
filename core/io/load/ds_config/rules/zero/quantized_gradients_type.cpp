#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule quantized_gradients_type() {
  return {
      .rule =
          {
              .id = "ds.quantized-gradients-type"_rule,
              .severity = Severity::warning,
              .title = "Quantized gradients that are not fp16",
              .explanation =
                  "The kernel that packs gradients to 4 bits reads fp16 without checking their "
                  "type.",
              .source = "csrc/quantization/pt_binding.cpp ds_swizzle_quant, swizzled_quantize.cu",
              .advice = "Train in fp16, or set communication_data_type to fp16.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // csrc/quantization/swizzled_quantize.cu reads gradients as fp16 whatever their type
            // is.
            if (s.values.stage() != 3 || !s.values.flag(kQuantizedGradients) ||
                mics_size(s.values) > 0)
              return;
            const auto sent = s.values.maybe_text("communication_data_type");
            const bool half = sent ? *sent == "fp16" : s.values.flag("fp16.enabled");
            if (!half)
              report(kQuantizedGradients,
                     "the quantizer reads gradients as fp16, and these are not: their bits would "
                     "be taken for other numbers",
                     "fp16, or communication_data_type fp16");
          },
  };
}

}  // namespace shardplan::config_rules::zero
