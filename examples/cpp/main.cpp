// Will it fit, and what is the largest part?   will_it_fit MODEL CLUSTER
#include <shardplan/shardplan.h>

#include <algorithm>
#include <iostream>

int main(int argc, char** argv) try {
  using namespace shardplan::api;
  if (argc != 3) {
    std::cerr << "usage: will_it_fit MODEL CLUSTER\n";
    return 2;
  }
  const Fit answer = fit(argv[1], argv[2], {{"sequence_length", "4096"}});
  const Estimate& estimate = answer.estimate;
  const Part& largest =
      *std::max_element(estimate.parts.begin(), estimate.parts.end(),
                        [](auto& a, auto& b) { return a.at_peak_bytes < b.at_peak_bytes; });
  std::cout << (estimate.fits ? "fits: " : "does not fit: ") << estimate.device.point
            << " bytes of each GPU\nlargest part: " << largest.category << ", "
            << largest.at_peak_bytes << " bytes\n";
  if (!estimate.fits && !answer.fixes.empty())
    for (const Change& change : answer.fixes.front().changes)
      std::cout << "try: " << change.what << "\n";
  return estimate.fits ? 0 : 1;
} catch (const shardplan::api::Error& error) {
  std::cerr << error.what() << "\n";
  if (!error.parts().nearest.empty()) std::cerr << "nearest: " << error.parts().nearest << "\n";
  return 2;
}
