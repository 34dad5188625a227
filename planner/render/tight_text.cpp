#include "render/tight_text.h"

#include <fmt/format.h>

#include "base/format.h"

namespace shardplan {
namespace {

/// Bytes with expandable segments, at most: live tensors and the process, with no room between
/// blocks that cannot be given back.
std::int64_t with_expandable_segments(const Estimate& e) {
  const std::int64_t process = e.device.upper - e.reserved.upper;
  const double tensors =
      static_cast<double>(e.allocated.point) * (e.margin ? e.margin->allocated : 1);
  return static_cast<std::int64_t>(tensors) + process;
}

}  // namespace

std::string tight_text(const Estimate& e) {
  if (e.verdict.gpu.fit != Fit::tight) return "";
  const std::int64_t packed = with_expandable_segments(e);
  std::string text =
      fmt::format("\nThe verdict is tight: a run may need from {} to {} of each GPU\n",
                  format_bytes(e.device.least), format_bytes(e.device.upper));
  // The allocator is not what such a bound is wide by.
  if (e.most_over > 1)
    return text + fmt::format(
                      "  published runs of such jobs took up to {:.0f} % more than is counted of "
                      "them, which decides it\n  no setting of the allocator makes it sure: {}\n",
                      100 * (e.most_over - 1),
                      packed <= e.usable_bytes ? "measure one step before you rely on it"
                                               : "the job needs more room");
  text += fmt::format(
      "  live tensors and the process take at most {}; how the allocator cuts its memory decides the "
      "rest\n",
      format_bytes(packed));
  if (e.margin && packed <= e.usable_bytes)
    text +=
        "  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True takes most of that uncertainty away\n";
  else
    text += "  no setting of the allocator makes it sure: the job needs more room\n";
  return text;
}

}  // namespace shardplan
