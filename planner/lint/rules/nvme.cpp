// Offload to NVMe: paths, requests, buffers.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/format.h"
#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

/// csrc/aio/py_lib/deepspeed_py_io_handle.cpp O_DIRECT_ALIGNMENT.
constexpr std::int64_t kAlignment = 512;

std::vector<Edit> align(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_number()) return {};
  const std::int64_t size = integer_of(*value);
  return {set_key(finding.key, (size + kAlignment - 1) / kAlignment * kAlignment)};
}

std::vector<Edit> grow_buffer(const Diagnostic& finding, const Json&) {
  std::string digits;
  for (const char c : finding.expected.text)
    if (c >= '0' && c <= '9') digits += c;
  if (digits.empty()) return {};
  return {set_key(finding.key, Json::parse(digits))};
}

constexpr Rule kRules[] = {
    {"nvme.block-size-alignment"_rule, Severity::error, "aio.block_size is no multiple of 512",
     "Files are opened with O_DIRECT; the second block of a request starts at an address that the "
     "kernel refuses.",
     "csrc/aio/py_lib/deepspeed_py_io_handle.cpp O_DIRECT_ALIGNMENT; open(2)",
     "Use a power of two, such as 1048576.", align},
    {"nvme.relative-path"_rule, Severity::warning, "A relative nvme_path",
     "It starts at each process's working directory, which differs between nodes and launchers.",
     "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py", "Write an absolute path."},
    {"nvme.volatile-path"_rule, Severity::warning, "An nvme_path that is usually memory",
     "/dev/shm, /run and often /tmp are backed by host memory: what is offloaded to them fills the "
     "host, and O_DIRECT may fail.",
     "tmpfs(5)", "Use a folder on a local NVMe file system."},
    {"nvme.few-requests"_rule, Severity::note, "Few bytes in flight to the NVMe",
     "block_size x queue_depth x intra_op_parallelism below 4 MiB leaves a device idle between "
     "requests.",
     "docs/_tutorials/deepnvme.md", "Raise queue_depth, or measure with ds_nvme_tune."},
    {"nvme.no-device"_rule, Severity::error, "Offload to NVMe on a machine without one",
     "The machine of --gpus is listed without local NVMe.", "data/hardware/instances.json",
     "Offload to cpu, or choose another machine."},
    {"nvme.small-buffer"_rule, Severity::error, "offload_param.buffer_size below the largest shard",
     "Every shard is read into one buffer; the swapper asserts that it fits.",
     "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py reserve_partitioned_swap_space, "
     "swap_in",
     "Use at least the elements that are shown.", grow_buffer},
};

constexpr std::array kBlocks{"zero_optimization.offload_optimizer",
                             "zero_optimization.offload_param"};

bool on_nvme(const DsValues& v, const std::string& block) {
  return v.stage() == 3 && v.maybe_text(block + ".device") == "nvme";
}

void check_path(const DsValues& v, const std::string& block, DsFindings& findings) {
  const std::string key = block + ".nvme_path";
  const std::string path = v.maybe_text(key).value_or("");
  if (path.empty()) return;
  if (path[0] != '/') {
    findings.warning("nvme.relative-path"_rule, key, say("'{}' is relative", path),
                     "an absolute path");
    return;
  }
  for (const std::string root : {"/dev/shm", "/run", "/tmp"})
    if (path == root || path.starts_with(root + "/"))
      findings.warning("nvme.volatile-path"_rule, key, say("{} is usually host memory", root),
                       "a folder on a local NVMe device");
}

void check_requests(const DsValues& v, DsFindings& findings) {
  const std::int64_t block = v.integer("aio.block_size");
  if (block % kAlignment != 0)
    findings.error("nvme.block-size-alignment"_rule, "aio.block_size",
                   say("{} is no multiple of {}", block, kAlignment),
                   say("a multiple of {}", kAlignment));
  constexpr double kEnough = 4.0 * 1024 * 1024;
  const double flying = static_cast<double>(block) *
                        static_cast<double>(v.integer("aio.queue_depth")) *
                        static_cast<double>(v.integer("aio.intra_op_parallelism"));
  if (flying < kEnough)
    findings.note("nvme.few-requests"_rule, "aio",
                  say("{} in flight at once", format_bytes(static_cast<std::int64_t>(flying))),
                  "at least 4 MiB");
}

/// Elements of the largest tensor's part on one rank.
std::int64_t largest_shard(const Model& model, std::int64_t ranks) {
  std::int64_t largest = 0;
  for (const Parameter& p : model.parameters) largest = std::max(largest, p.numel);
  return (largest + ranks - 1) / ranks;
}

}  // namespace

std::span<const Rule> nvme_rules() {
  return kRules;
}

void check_nvme(const LintSubject& s, LintFindings& findings) {
  const DsValues& v = s.values;
  bool any = false;
  for (const char* block : kBlocks) {
    if (!on_nvme(v, block)) continue;
    any = true;
    check_path(v, block, findings.config);
    if (s.cluster != nullptr && s.cluster->nvme && s.cluster->nvme->capacity.count() == 0)
      findings.config.error("nvme.no-device"_rule, std::string(block) + ".device",
                            say("{} has no local NVMe", s.cluster->label), "cpu");
  }
  if (any) check_requests(v, findings.config);
  constexpr const char* kBuffer = "zero_optimization.offload_param.buffer_size";
  if (!on_nvme(v, kBlocks[1]) || s.model == nullptr || !s.context.world_size) return;
  const std::int64_t shard = largest_shard(*s.model, *s.context.world_size);
  if (v.integer(kBuffer) < shard)
    findings.config.error(
        "nvme.small-buffer"_rule, kBuffer,
        say("{} elements do not hold the largest shard, {}", v.integer(kBuffer), shard),
        say("at least {}", shard));
}

}  // namespace shardplan
