// How fast a machine runs what a step program holds: shares of its datasheet rates and fixed times,
// fitted to measurements (docs/explanation/time.md). Shares carry over to other GPUs, as
// assumptions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hardware/cluster.h"
#include "program/kernel.h"

namespace shardplan {

/// A kernel that moves bytes: seconds + max(bytes at a share of the memory's bandwidth, elements at
/// so many fp32 FLOPs' time each). Kernels that fit the cache run at another share.
struct MemoryRate {
  double bandwidth = 0.8;  ///< share of the datasheet's
  double cached = 1.0;     ///< the same for less than KernelRates::cache_bytes
  double slots = 0;        ///< fp32 FLOPs at the datasheet's rate that pass for one element
  double seconds = 2e-6;
};

/// Matrix products: waves of tiles over the multiprocessors, a tile's depth cut in parts where
/// that fills them better.
struct ProductRates {
  double seconds = 1.2e-6;                       ///< of a launch
  double wave_seconds = 1e-6;                    ///< filling and draining
  std::array<double, 3> tile{0.82, 0.84, 0.47};  ///< share of the peak, by ProductTile
  double memory = 0.8;       ///< share of the bandwidth, where operands are what takes time
  double throttling = 0.17;  ///< slowdown of products of 1e12 FLOP and more: power
  double reduction = 3;      ///< passes over fp32 parts of the result, for each part
  double burst = 0.9;        ///< a step's products over the same ones run back to back
  double unaligned = 0.2;    ///< share of the peak with an even width that 8 does not divide
  double odd = 0.12;         ///< the same with an odd width
  double fp32 = 0.76;        ///< share of the fp32 peak
  double fp32_tile = 0.8;    ///< the same of a whole tile of 128 × 128
  double fp8 = 0.915;        ///< share of what products of 16 bits reach of their peak
  double tf32 = 0.8;         ///< the same, of fp32 tensors on tensor cores
  /// Of those that sum rows, whose operands both lie across what tensor cores read of four bytes.
  double tf32_summed = 0.5;
};

/// Products that our engine starts one by one, where those above ran from graphs: what differs.
struct LibraryProductRates {
  double gap = 0.9e-6;    ///< seconds between one kernel and the next
  double split = 1.5e-6;  ///< of putting together the parts of a depth that is cut
  double cached = 1.2;    ///< share of the bandwidth, of operands that fit the cache
  double burst = 0.95;    ///< as ProductRates::burst
  double fp32_gap = 3e-6, fp32_split = 4e-6;
  double fp32_small = 0.9;  ///< share of ProductRates::fp32 that tiles of 64 × 64 reach
  double fp32_tiny = 0.6;   ///< and of 32 × 32
};

/// Fused attention: share of the peak that grows with the width of heads.
struct AttentionRates {
  double peak = 0.8;       ///< share at infinite width
  double half_width = 32;  ///< width at which half of it is reached
  double seconds = 5e-6;
  double diagonal = 128;  ///< causal: keys a row computes beyond its half
  double filled = 64;     ///< channels that heads of up to 128 are filled up to a multiple of
  double wide = 1;        ///< times, where heads are wider than 128
  double tail = 0;        ///< causal: of a tile that sees all keys, how much ends alone
  double memory = 0;      ///< share of the bandwidth that operands move at; 0: is in the above
};

/// Where nothing was fitted: updates of quantized states take as long as the time that a record of
/// 8-bit AdamW on an H100 leaves for them (docs/explanation/time.md, "Quantized states").
constexpr std::array<MemoryRate, kKernelKinds> usual_memory_rates() {
  std::array<MemoryRate, kKernelKinds> rates{};
  rates[static_cast<std::size_t>(KernelKind::blockwise_update)].slots = 1500;
  return rates;
}

struct KernelRates {
  std::array<MemoryRate, kKernelKinds> memory = usual_memory_rates();  ///< by KernelKind
  double cache_bytes = 40e6;
  /// fp32 FLOPs that pass for an element of one byte whose row and column change places.
  double turned_slots = 461;
  double short_row_slots = 14740;  ///< the same of a row that one warp adds up
  ProductRates product;
  LibraryProductRates library;
  AttentionRates attention, attention_backward;  ///< cuDNN's kernel
  /// Of engines: ours, which starts cuDNN's kernels itself, and those that serve: vLLM's prompts
  /// attend by FlashAttention-3 on Hopper (vllm/v1/attention/backends/flash_attn.py). Forward
  /// passes in fp32 have them too: no shape of theirs was timed out of the cache.
  AttentionRates engine_forward;
  AttentionRates engine_backward;                                     ///< of ours alone
  AttentionRates flash{.peak = 0.35, .half_width = 3, .filled = 32};  ///< FlashAttention-2
  AttentionRates flash_backward{.peak = 0.35, .half_width = 33, .filled = 32};  ///< the same
  AttentionRates masked{.wide = 1.69},
      masked_backward{.wide = 1.6};                                ///< the memory-efficient kernel
  AttentionRates by_rows{.peak = 0.1, .half_width = 32};           ///< shares of the fp32 peak
  AttentionRates by_rows_backward{.peak = 0.1, .half_width = 32};  ///< the same
  double attention_dropout = 2.15;  ///< times the forward pass without
  double fp32_attention = 0.45;     ///< share of the fp32 peak
  /// Between a kernel's end and the next one's begin where PyTorch starts them one by one, beside
  /// the same kernels in a CUDA graph, from which the rates above are.
  double gap = 1e-6;
  /// Within a step, over the same kernel repeated, of which the rates above are: what the cache
  /// holds of its operands. Of PyTorch's kernels that move bytes.
  double in_step = 1.13;
  double slowdown = 1;  ///< times every kernel's time: of a machine, in no calibration
};

/// How many times as long the hosts of measured runs took for eager PyTorch's calls as the one that
/// HostRates::seconds are of, in the median, on machines with GPUs of `arch`. Of others nobody
/// knows.
struct UsualHost {
  /// Of the hosts beside one of them.
  struct Beside {
    std::string gpu;  ///< as a catalogue calls it
    double pace = 1;
  };

  std::string arch;
  double pace = 1;
  std::vector<Beside> gpus;  ///< those that differ

  double pace_with(const Gpu& gpu) const;
};

/// What the host takes to start things, in eager PyTorch.
struct HostRates {
  std::array<double, kIssues> seconds{12e-6,  15e-6,  19e-6,  2e-6,   55e-6,   36e-6,  600e-6,
                                      1e-3,   3e-6,   150e-6, 8e-6,   330e-6,  45e-6,  100e-6,
                                      125e-6, 130e-6, 330e-6, 21e-6,  13.4e-6, 7.8e-6, 55e-6,
                                      75e-6,  11e-6,  6e-6,   150e-6, 130e-6};  ///< by Issue
  UsualHost usual;
  double launch_wait = 9e-6;  ///< where a launch waits for its kernel: beside the kernel's time
  double empty = 0.4;         ///< share of that for a call that starts nothing: a view
  double no_grad = 0.8;       ///< share of the seconds of python and nested where autograd is off
  double collective_seconds = 40e-6;
  double message_seconds = 6e-6;  ///< for a send or a receive within a group of them
  double phase_seconds = 2e-3;    ///< before the first kernel of a phase
  /// Of a node's CPUs together.
  double deepspeed_adam_elements_per_second = 1.4e9;
  double torch_adam_elements_per_second = 2e9;
  /// Of our engine's AdamW: read and written, by a node's CPUs together.
  double native_adam_bytes_per_second = 90e9;
  /// Of the nodes that this was timed in (GpuAbilities::host_memory_gbs): those with H100.
  std::int64_t memory_gbs = 614;
  /// Where it rounds at random, into bf16: the cores' own work, however fast their memory is.
  double native_rounding_bytes_per_second = 68e9;
};

/// Collectives: seconds + bytes sent at a share of the link's bandwidth.
struct LinkRates {
  double node = 0.78;           ///< share of a GPU's NVLink or PCIe rate
  double network = 0.75;        ///< share of the rate between nodes, of a link without its own
  double seconds = 25e-6;       ///< of a collective within a node
  double node_seconds = 14e-6;  ///< for each time that a message goes on to the next node
  double host = 0.88;           ///< share of PCIe, pinned memory
  double host_memory = 141e9;   ///< bytes/s that a socket's memory takes of its GPUs' copies
  double contention = 0.1;      ///< slowdown of computation while a collective runs
  double slowdown = 1;          ///< times every collective's time: of a machine, in no calibration
  double drives = 1;            ///< the same, of copies to and from NVMe
};

struct TimeRates {
  KernelRates kernels;
  HostRates host;
  LinkRates links;
};

}  // namespace shardplan
