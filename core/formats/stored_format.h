// How weights that nothing trains are stored, scales and all: one row a format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dtype.h"

namespace shardplan {

/// Of a frozen base under LoRA, or of the weights of generation.
enum class Quantization : std::uint8_t {
  none,
  nf4,
  nf4_double,
  fp4,
  fp4_double,
  int8,
  fp8,
  gptq,
  awq,
  mxfp8,
  mxint8,
  nvfp4,
  mxfp4,
};

/// By Quantization; `none` leaves weights in the type that the precision says.
/// - nf4, fp4: bitsandbytes/functional.py: 4 bits, an fp32 scale for 64 elements; with _double,
///   scales of a byte, and an fp32 scale for 256 of them. They differ in the 16 values alone.
/// - int8: bitsandbytes' LLM.int8(): an fp32 scale for each row.
/// - fp8: e4m3 with an fp32 scale for 128 by 128 (transformers, finegrained_fp8).
/// - gptq, awq: 4 bits in groups of 128 along the inputs, with fp16 scales and 4-bit zero points;
/// gptq
///   keeps the order of the inputs too.
/// - mxfp8, mxint8: OCP Microscaling Formats (MX) 1.0: 32 elements of a row share an E8M0 scale.
/// - nvfp4: e2m1 elements, 16 of a row share an e4m3 scale, and the tensor an fp32 one (NVIDIA).
/// - mxfp4: e2m1 elements of experts, 32 of a row share an E8M0 scale (OCP MX 1.0), as gpt-oss is
///   published: attention, routers and words stay in 16 bits (modules_to_not_convert). Inputs are
///   filled up as kernels want them (vLLM, quantization/mxfp4.py and triton_kernels' layouts): vLLM
///   0.14 loads gpt-oss-120b in 64.38 GiB (vllm 33155).
inline constexpr std::array<NumberFormat, 13> kStoredFormats{{
    {.name = "none",
     .other_names = {},
     .uses = kWeightStore | kBaseStore,
     .spoken = "no 16bit false off"},
    {.name = "nf4",
     .other_names = {},
     .bits = 4,
     .uses = kWeightStore | kBaseStore,
     .parts = {{{"scales", 32, Sharing::run, 0, 64}}},
     .widened = true,
     .words = "nf4 weights",
     .spoken = "4bit 4 int4 load_in_4bit"},
    {.name = "nf4_double",
     .other_names = {},
     .bits = 4,
     .uses = kWeightStore | kBaseStore,
     .parts = {{{"scales", 8, Sharing::run, 0, 64},
                {"scales of scales", 32, Sharing::values, 0, 256}}},
     .widened = true,
     .words = "nf4 weights, scales quantized too",
     .spoken = "double_quant nf4_double_quant"},
    {.name = "fp4",
     .other_names = {},
     .bits = 4,
     .uses = kBaseStore,
     .parts = {{{"scales", 32, Sharing::run, 0, 64}}},
     .widened = true,
     .words = "fp4 weights"},
    {.name = "fp4_double",
     .other_names = {},
     .bits = 4,
     .uses = kBaseStore,
     .parts = {{{"scales", 8, Sharing::run, 0, 64},
                {"scales of scales", 32, Sharing::values, 0, 256}}},
     .widened = true,
     .words = "fp4 weights, scales quantized too"},
    {.name = "int8",
     .other_names = {},
     .bits = 8,
     .rate = PeakRate::int8,
     .sums = DType::i32,
     .uses = kWeightStore | kBaseStore,
     .parts = {{{"scales", 32, Sharing::tile, 1, 0}}},
     .casts_inputs = true,
     .shards = false,
     .words = "int8 weights",
     .spoken = "8bit 8 load_in_8bit llm_int8"},
    {.name = "fp8",
     .other_names = {},
     .bits = 8,
     .rate = PeakRate::fp8,
     .sums = DType::f32,
     .uses = kWeightStore,
     .parts = {{{"scales", 32, Sharing::tile, 128, 128}}},
     .words = "fp8 weights"},
    {.name = "gptq",
     .other_names = {},
     .bits = 4,
     .uses = kWeightStore,
     .parts = {{{"scales", 16, Sharing::tile, 1, 128},
                {"zero points", 4, Sharing::tile, 1, 128},
                {"order of inputs", 32, Sharing::tile, 0, 1}}},
     .words = "GPTQ weights of 4 bits"},
    {.name = "awq",
     .other_names = {},
     .bits = 4,
     .uses = kWeightStore,
     .parts = {{{"scales", 16, Sharing::tile, 1, 128}, {"zero points", 4, Sharing::tile, 1, 128}}},
     .words = "AWQ weights of 4 bits"},
    {.name = "mxfp8",
     .other_names = {},
     .bits = 8,
     .rate = PeakRate::fp8,
     .sums = DType::f32,
     .parts = {{{"scales", 8, Sharing::tile, 1, 32}}},
     .words = "mxfp8 weights"},
    {.name = "mxint8",
     .other_names = {},
     .bits = 8,
     .rate = PeakRate::int8,
     .sums = DType::i32,
     .parts = {{{"scales", 8, Sharing::tile, 1, 32}}},
     .words = "mxint8 weights"},
    {.name = "nvfp4",
     .other_names = {},
     .bits = 4,
     .rate = PeakRate::fp4,
     .sums = DType::f32,
     .parts = {{{"scales", 8, Sharing::tile, 1, 16},
                {"scale of the tensor", 32, Sharing::tile, 0, 0}}},
     .words = "nvfp4 weights"},
    {.name = "mxfp4",
     .other_names = {},
     .bits = 4,
     .uses = kWeightStore,
     .parts = {{{"scales", 8, Sharing::tile, 1, 32}}},
     .of_experts = true,
     .pads_inputs = 256,
     .words = "MXFP4 weights of experts"},
}};

constexpr const NumberFormat& format_of(Quantization format) {
  return kStoredFormats[static_cast<std::size_t>(format)];
}

/// As jobs write it: "nf4_double".
constexpr std::string_view name_of(Quantization format) {
  return format_of(format).name;
}

/// The format of this name, where it has all of `uses`.
std::optional<Quantization> parse_quantization(std::string_view name, unsigned uses);

/// The names of the formats that have all of `uses`; "none" comes first.
std::vector<std::string> quantization_names(unsigned uses);

}  // namespace shardplan
