// What jobs can say of torch.nn.parallel.DistributedDataParallel.
#include "base/units.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr Option<Framework> bucket_cap() {
  return {.info = {.key = "bucket_cap_mb",
                   .help = "size of a bucket of gradients",
                   .unit = "MiB",
                   .kind = OptionKind::number,
                   .numbers = {0.001, 1e6}},
          .access = {
              .get = [](const Framework& f) -> OptionValue {
                return static_cast<double>(f.ddp.bucket_cap_bytes) / static_cast<double>(kMiB);
              },
              .set =
                  [](Framework& f, const OptionValue& v) {
                    f.ddp.bucket_cap_bytes =
                        static_cast<std::int64_t>(std::get<double>(v) * static_cast<double>(kMiB));
                  }},
          .rules = {}};
}

constexpr std::array kDdpOptions{
    option<&Framework::ddp, &DdpOptions::gradient_as_bucket_view>(
        {.key = "gradient_as_bucket_view",
         .flag = "--gradient-as-bucket-view",
         .help = "gradients are views into the buckets"}),
    option<&Framework::ddp, &DdpOptions::zero_redundancy_optimizer>(
        {.key = "zero_redundancy_optimizer",
         .flag = "--zero-redundancy-optimizer",
         .help = "split optimizer states over the GPUs"}),
    option<&Framework::ddp, &DdpOptions::find_unused_parameters>(
        {.key = "find_unused_parameters",
         .flag = "--find-unused-parameters",
         .help = "look for parameters without a gradient; copies what the model returns",
         .default_text = "true under `trainer` hf_trainer and trl unless a model without adapters "
                         "is checkpointed, else false"}),
    bucket_cap(),
};

}  // namespace

extern const OptionTable<Framework> kDdpOptionTable;
constinit const OptionTable<Framework> kDdpOptionTable{"framework", "DDP", kDdpOptions};

}  // namespace shardplan
