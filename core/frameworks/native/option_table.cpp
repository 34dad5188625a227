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
};

}  // namespace

extern const OptionTable<Framework> kNativeOptionTable;
constinit const OptionTable<Framework> kNativeOptionTable{"framework", "native", kNativeOptions};

}  // namespace shardplan
