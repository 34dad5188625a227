// Experts as vLLM multiplies them, timed on an H100
// (data/measurements/rates/h100/h100-vllm-experts.json), against the tiles of its kernel. Rates
// were fitted to every second shape.
#include "serving/expert_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "json/document.h"
#include "load/hardware.h"

namespace shardplan::expert_products_accuracy_test {
namespace {

struct Shape {
  ExpertProduct up, down;
  double measured = 0;  ///< seconds of both products
};

double number(const Json& row, const char* key) {
  return row.at(key).get<double>();
}

std::vector<Shape> shapes(const std::string& dtype) {
  std::vector<Shape> all;
  const Json record =
      read_json_file(SHARDPLAN_SOURCE_DIR "/data/measurements/rates/h100/h100-vllm-experts.json");
  for (const Json& row : record.at("rates")) {
    if (row.at("dtype").get<std::string>() != dtype) continue;
    const double width = number(row, "width"), hidden = number(row, "hidden");
    Shape s;
    s.up = ExpertProduct{{number(row, "experts"), number(row, "of_token")}};
    s.up.tokens = number(row, "tokens");
    s.up.bytes = dtype == "bfloat16" ? 2 : 1;
    s.down = s.up;
    s.up.n = 2 * width;
    s.up.k = hidden;
    s.up.gathered = true;
    s.down.n = hidden;
    s.down.k = width;
    for (const Json& kernel : row.at("kernels"))
      if (kernel.at("name").get<std::string>().starts_with("fused_moe_kernel"))
        s.measured += number(kernel, "seconds");
    all.push_back(s);
  }
  return all;
}

struct Errors {
  double mean = 0, largest = 0;
};

/// Of the shapes `first`, `first` + 2, ...
Errors errors(const std::string& dtype, std::size_t first) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const GpuPeaks peaks = peaks_of(find_gpu(hardware, "H100-SXM5-80GB")->gpu, DType::bf16);
  const std::vector<Shape> all = shapes(dtype);
  const double peak = dtype == "bfloat16" ? peaks.half : peaks.fp8;
  Errors e;
  double rows = 0;
  for (std::size_t i = first; i < all.size(); i += 2, ++rows) {
    const double seconds = expert_seconds(all[i].up, kVllmExperts, peak, peaks.memory) +
                           expert_seconds(all[i].down, kVllmExperts, peak, peaks.memory);
    const double error = std::abs(seconds / all[i].measured - 1);
    e.mean += error;
    e.largest = std::max(e.largest, error);
  }
  e.mean /= rows;
  return e;
}

TEST(ExpertProductsAccuracy, WideShapesThatWereNotFitted) {
  const Errors e = errors("bfloat16", 1);
  EXPECT_LT(e.mean, 0.075);
  EXPECT_LT(e.largest, 0.23);
}

TEST(ExpertProductsAccuracy, NarrowShapesThatWereNotFitted) {
  const Errors e = errors("float8_blocks", 1);
  EXPECT_LT(e.mean, 0.075);
  EXPECT_LT(e.largest, 0.16);
}

}  // namespace
}  // namespace shardplan::expert_products_accuracy_test
