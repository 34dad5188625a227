#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {
namespace {

std::vector<Edit> align(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_number()) return {};
  const std::int64_t size = integer_of(*value);
  return {set_key(finding.key, (size + kAlignment - 1) / kAlignment * kAlignment)};
}

}  // namespace

LintRule block_size_alignment() {
  return {
      .rule =
          {
              .id = "nvme.block-size-alignment"_rule,
              .severity = Severity::error,
              .title = "aio.block_size is not a multiple of 512",
              .explanation =
                  "Files are opened with O_DIRECT; the second block of a request starts at an "
                  "address that the kernel refuses.",
              .source = "csrc/aio/py_lib/deepspeed_py_io_handle.cpp O_DIRECT_ALIGNMENT; open(2)",
              .advice = "Use a power of two, such as 1048576.",
              .repair = align,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t block = s.values.integer("aio.block_size");
            if (anything_on_nvme(s.values) && block % kAlignment != 0)
              report("aio.block_size", say("{} is not a multiple of {}", block, kAlignment),
                     say("a multiple of {}", kAlignment));
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
