#include "timing/part_factors.h"

namespace shardplan {

void slow_host(HostRates& host, double factor) {
  for (double& seconds : host.seconds) seconds *= factor;
  host.launch_wait *= factor;
  host.collective_seconds *= factor;
  host.message_seconds *= factor;
  host.phase_seconds *= factor;
}

TimeRates slowed_down(TimeRates rates, const PartFactors& factors) {
  const auto factor = [&](StepPart part) { return factors[index_of(part)]; };
  rates.kernels.slowdown *= factor(StepPart::kernels);
  rates.links.slowdown *= factor(StepPart::links);
  rates.links.host /= factor(StepPart::copies);
  rates.links.host_memory /= factor(StepPart::copies);
  rates.links.drives *= factor(StepPart::drives);
  slow_host(rates.host, factor(StepPart::host));
  for (double* rate :
       {&rates.host.deepspeed_adam_elements_per_second, &rates.host.torch_adam_elements_per_second,
        &rates.host.native_adam_bytes_per_second, &rates.host.native_rounding_bytes_per_second})
    *rate /= factor(StepPart::host_optimizer);
  return rates;
}

}  // namespace shardplan
