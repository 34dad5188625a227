// The host back end: every operation on the CPU, in order, done when the call returns. Element
// types: fp64 (the reference: arithmetic in fp64 throughout), fp32, bf16 and fp16 (arithmetic in
// fp32, results rounded to nearest-even).
#pragma once

#include <cstdint>
#include <memory>

#include "device/backend.h"

namespace shardplan::validator {

/// When fetch() and send() copy: at once, or when something waits for what was enqueued behind
/// them. Between the two lies all that a device with streams may do: what comes out the same both
/// ways forgets no event.
enum class CopyTime : std::uint8_t { at_once, late };

/// A device of `capacity_bytes` of this machine's memory; 0: as much as there is.
std::unique_ptr<Backend> make_host_backend(std::int64_t capacity_bytes = 0,
                                           CopyTime copies = CopyTime::at_once);

}  // namespace shardplan::validator
