#include "calibrate/step_fits.h"

namespace shardplan {
namespace {

double* issue(TimeRates& rates, Issue kind) {
  return &rates.host.seconds[static_cast<std::size_t>(kind)];
}

}  // namespace

const StepFit kDdpSteps{"steps under DDP", false, [](TimeRates& rates) {
                          return std::vector<double*>{&rates.links.contention};
                        }};

const StepFit kFsdp2Steps{"steps under FSDP2", false, [](TimeRates& rates) {
                            return std::vector<double*>{issue(rates, Issue::hook),
                                                        issue(rates, Issue::sharded),
                                                        &rates.host.torch_adam_elements_per_second};
                          }};

const StepFit kDeepSpeedSteps{"steps under DeepSpeed", false, [](TimeRates& rates) {
                                return std::vector<double*>{
                                    issue(rates, Issue::engine),
                                    &rates.host.deepspeed_adam_elements_per_second};
                              }};

const StepFit kMegatronSteps{"small steps under Megatron Core", true, [](TimeRates& rates) {
                               return std::vector<double*>{issue(rates, Issue::module)};
                             }};

}  // namespace shardplan
