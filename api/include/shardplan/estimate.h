// What one job needs. Memory is in bytes of the fullest GPU, time in seconds of one step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardplan::api {

/// A prediction in bytes, with bounds that a real run is not expected to pass.
struct Range {
  std::int64_t least = 0;
  std::int64_t point = 0;
  std::int64_t upper = 0;
};

enum class Verdict : std::uint8_t {
  fits,          ///< the upper bound is within what there is
  tight,         ///< the lower bound is, the upper bound is not
  does_not_fit,  ///< the lower bound is not
  unknown,       ///< how much there is is not known
};

/// Whether one kind of memory is enough.
struct Room {
  Verdict verdict = Verdict::unknown;
  std::int64_t needed_bytes = 0;  ///< the point estimate: of a GPU, or of a node
  std::optional<std::int64_t> available_bytes;
};

/// One category of what fills the fullest GPU.
struct Part {
  std::string category;             ///< "parameters", "activations", ...
  std::int64_t resident_bytes = 0;  ///< between steps
  std::int64_t at_peak_bytes = 0;   ///< when allocated memory peaks
  std::string source;               ///< "exact", "modelled", "calibrated" or "assumed"
};

/// How far off predicted steps of a kind were from measured ones, over what was measured.
struct StepError {
  std::string kind;  ///< "fsdp2", "deepspeed stage 3", ...
  std::int64_t runs = 0;
  double mean = 0;     ///< of the absolute errors
  double largest = 0;  ///< signed: above 0 where the prediction was too long
};

/// Where a step's time goes. All are 0 where the rates of the GPU are not known.
struct Time {
  double step_seconds = 0;
  double tokens_per_second = 0;  ///< of all GPUs
  double mfu = 0;                ///< model FLOPs over the GPU's dense peak, 0 to 1
  // These add up to step_seconds.
  double compute_seconds = 0;
  double exposed_communication_seconds = 0;  ///< that no computation hides
  double exposed_copy_seconds = 0;           ///< to and from the host and NVMe
  double optimizer_seconds = 0;
  double bubble_seconds = 0;       ///< waiting for other pipeline stages
  double idle_seconds = 0;         ///< the GPU waits for the host
  std::optional<StepError> error;  ///< absent: no step of this kind was measured
};

/// The answer of `estimate`.
struct Estimate {
  bool fits = false;       ///< gpu, host and nvme: each fits or is not known
  std::string limited_by;  ///< "gpu", "host", "nvme", or "" where it fits
  Room gpu, host, nvme;

  std::string model;
  std::int64_t parameters = 0;
  std::int64_t trainable_parameters = 0;

  std::int64_t capacity_bytes = 0;  ///< of a GPU
  std::int64_t usable_bytes = 0;    ///< by a process
  Range allocated;                  ///< peak of tensors: torch.cuda.max_memory_allocated()
  Range reserved;                   ///< of PyTorch's allocator: torch.cuda.max_memory_reserved()
  Range device;                     ///< with the CUDA context and the library of collectives
  std::string peak_phase;           ///< "forward", "backward", "step", ...
  std::vector<Part> parts;          ///< in a fixed order; at_peak_bytes add up to device.point

  Time time;
  std::vector<std::string> warnings;
  std::vector<std::string> assumed;  ///< what the job left open: "checkpointing: full"
  std::string remarks;               ///< what was taken from which file; lines, or ""
  /// The whole answer as `shardplan ... --format json` has it (shardplan.estimate/1): traffic,
  /// cost, memory by phase, and all of the above.
  std::string json;
};

struct Change {
  std::string what;  ///< "activation checkpointing on every block"
  std::string how;   ///< where it is set
};

/// Changes that save memory together, and their price.
struct Fix {
  std::vector<Change> changes;
  std::int64_t saved_bytes = 0;   ///< of each GPU
  double slowdown = 0;            ///< time for a token after over before; 0: not known
  bool fits = false;              ///< the job, with them
  std::int64_t device_bytes = 0;  ///< of each GPU, with them
};

/// The answer of `fit`.
struct Fit {
  Estimate estimate;
  std::vector<Fix> fixes;  ///< the best first
};

}  // namespace shardplan::api
