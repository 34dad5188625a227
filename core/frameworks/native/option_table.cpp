// What jobs can say of shardplan's own engine.

#include "options/choices.h"
#include "options/member.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr std::array kNativeDevices{named("cuda", NativeDevice::cuda),
                                    named("host", NativeDevice::host)};

constexpr std::array kNativeOptions{
    option<&Framework::native, &NativeOptions::zero_stage>({.key = "zero_stage",
                                                            .flag = "--zero-stage",
                                                            .help = "ZeRO stage, 0 to 3",
                                                            .integers = {0, 3}}),
    option<&Framework::native, &NativeOptions::device>(
        {.key = "device", .help = "what the step runs on", .choices = kNativeDevices}),
    option<&Framework::native, &NativeOptions::offload_optimizer>(
        {.key = "offload_optimizer",
         .flag = "--offload-optimizer",
         .help = "where optimizer states are kept and updated",
         .choices = kOffloadDevices}),
    option<&Framework::native, &NativeOptions::offload_param>({.key = "offload_param",
                                                               .flag = "--offload-param",
                                                               .help = "where parameters are kept",
                                                               .choices = kOffloadDevices}),
    option<&Framework::native, &NativeOptions::use_gds>(
        {.key = "use_gds",
         .flag = "--use-gds",
         .help = "GPUs read their parameters from NVMe through cuFile",
         .doc = "with `offload_param` nvme: GPUs read their parameters from NVMe through cuFile "
                "(GPUDirect Storage), past the host's memory where its driver can"}),
    option<&Framework::native, &NativeOptions::delayed_update>(
        {.key = "delayed_update",
         .flag = "--delayed-update",
         .help = "a step is updated beside the next one, which does not have the update yet",
         .doc =
             "with `offload_optimizer`: a step's update is made beside the next step, which does "
             "not have it yet (ZeRO-Offload's delayed parameter update)"}),
    option<&Framework::native, &NativeOptions::capacity_factor>(
        {.key = "capacity_factor",
         .help = "rows that an expert takes of each GPU, over an even share; 0: all",
         .doc = "of layers of experts: rows that an expert takes of each GPU, over an even share; "
                "the rest are dropped and counted. 0: none is dropped",
         .numbers = {0, 1e6},
         .changes_passes = true}),
    option<&Framework::native, &NativeOptions::idle_experts>(
        {.key = "idle_experts",
         .help = "experts of a layer that get no row, without a capacity: as a record counts them",
         .doc = "of layers of experts without a capacity: how many get no row of a micro-batch, in "
                "the mean over layers. Nothing is started for them, which the time goes by; a "
                "record says how many there were (`measured.idle_experts`). Random weights leave "
                "many of 64 without any, a trained router few",
         .numbers = {0, 1e6},
         .changes_passes = true}),
};

}  // namespace

extern const OptionTable<Framework> kNativeOptionTable;
constinit const OptionTable<Framework> kNativeOptionTable{"framework", "native", kNativeOptions};

}  // namespace shardplan
