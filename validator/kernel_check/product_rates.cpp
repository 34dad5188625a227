#include "kernel_check/product_rates.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/cuda.h"
#include "memory/arena.h"

namespace shardplan::validator {
namespace {

constexpr int kCallsInARow = 48, kRounds = 5;

/// c [rows, columns] of so many bands. `summed`: over rows, as a weight's gradient is.
struct ProductCase {
  std::int64_t rows, columns, inner;
  std::int64_t bands = 1;
  bool summed = false, adds = false;
};

/// Of an expert's or a layer's adapter of rank r beside a matrix of [outputs, inputs]: its two
/// products forward, and the four backward.
void add_adapter(std::vector<ProductCase>& list, std::int64_t rows, std::int64_t outputs,
                 std::int64_t inputs, std::int64_t r, std::int64_t bands) {
  list.push_back({rows, r, inputs, bands});
  list.push_back({.rows = rows, .columns = outputs, .inner = r, .bands = bands, .adds = true});
  list.push_back({outputs, r, rows, bands, true});
  list.push_back({rows, r, outputs, bands});
  list.push_back({r, inputs, rows, bands, true});
  list.push_back({.rows = rows, .columns = inputs, .inner = r, .bands = bands, .adds = true});
}

/// The matrix itself: forward, its gradient and that of its input.
void add_matrix(std::vector<ProductCase>& list, std::int64_t rows, std::int64_t outputs,
                std::int64_t inputs, std::int64_t bands) {
  list.push_back({rows, outputs, inputs, bands});
  list.push_back({outputs, inputs, rows, bands, true});
  list.push_back({rows, inputs, outputs, bands});
}

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> list;
  for (const std::int64_t bands : {1, 8, 64})
    for (const std::int64_t rows : {80, 512}) {
      add_matrix(list, rows, 1536, 1024, bands);
      for (const std::int64_t r : {8, 16, 64}) add_adapter(list, rows, 1536, 1024, r, bands);
    }
  for (const std::int64_t rows : {1024, 4096}) {
    add_matrix(list, rows, 2048, 2048, 1);
    for (const std::int64_t r : {8, 16, 64}) add_adapter(list, rows, 2048, 2048, r, 1);
    add_adapter(list, rows, 8192, 2048, 16, 1);
  }
  return list;
}

struct CallTime {
  double host = 0, device = 0;  ///< seconds of one call
};

/// Medians over repeats. What `busy` does keeps the device busy while calls are started behind it.
CallTime time_of_call(Backend& device, const std::function<void()>& busy,
                      const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const Event begin = device.new_event(), end = device.new_event();
  call();  // the first one loads code
  std::vector<double> host, gpu;
  for (int i = 0; i < kRounds; ++i) {
    device.synchronize();
    busy();
    device.record(begin, Stream::compute);
    const auto started = Clock::now();
    for (int c = 0; c < kCallsInARow; ++c) call();
    const std::chrono::duration<double> taken = Clock::now() - started;
    device.record(end, Stream::compute);
    device.synchronize();
    host.push_back(taken.count() / kCallsInARow);
    gpu.push_back(device.seconds_between(begin, end) / kCallsInARow);
  }
  const auto median = [](std::vector<double>& of) {
    std::nth_element(of.begin(), of.begin() + kRounds / 2, of.end());
    return of[kRounds / 2];
  };
  return {median(host), median(gpu)};
}

}  // namespace

std::string product_rates_record() {
  constexpr std::int64_t kArena = std::int64_t{6} << 30, kBusy = std::int64_t{1} << 30;
  const auto device = make_cuda_backend(0);
  Arena arena(device->allocate(kArena), kArena);
  const std::int64_t workspace = device->workspace_bytes({});
  device->use_workspace(
      arena.allocate("workspace", Category::workspace, DType::i8, Shape{workspace}));
  const Tensor filled =
      arena.allocate("busy", Category::other, DType::f32, Shape{kBusy / size_of(DType::f32)});
  const auto busy = [&] {
    for (int i = 0; i < 6; ++i) device->fill(filled, 1.0F);
  };
  const DeviceInfo info = device->info();
  nlohmann::json record{{"schema", "shardplan.rates/1"},
                        {"producer", {{"program", "shardplan-kernel-check products"}}},
                        {"environment", {{"gpu", info.name}, {"gpu_bytes", info.capacity_bytes}}}};
  for (const auto& [name, version] : info.versions) record["environment"][name] = version;
  record["rates"] = nlohmann::json::array();
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const ProductCase& p : product_cases()) {
      const Arena::Scope scope(arena);
      const auto operand = [&](const char* name, std::int64_t rows, std::int64_t columns) {
        const Tensor x =
            arena.allocate(name, Category::activations, dtype, Shape{p.bands * rows, columns});
        device->fill_normal(x, 0.1F, 1, 0);
        return Columns{x, 0, columns};
      };
      const ColumnProduct product{
          .c = operand("c", p.rows, p.columns),
          .a = p.summed ? operand("a", p.inner, p.rows) : operand("a", p.rows, p.inner),
          .b = operand("b", p.inner, p.columns),
          .a_transposed = p.summed,
          .accumulate = p.adds,
          .bands = p.bands};
      const CallTime t = time_of_call(*device, busy, [&] { device->multiply_columns(product); });
      record["rates"].push_back({{"kind", "product"},
                                 {"form", p.summed ? "summed"
                                          : p.adds ? "added"
                                                   : "plain"},
                                 {"dtype", dtype == DType::f32 ? "float32" : "bfloat16"},
                                 {"m", p.rows},
                                 {"n", p.columns},
                                 {"k", p.inner},
                                 {"batch", p.bands},
                                 {"seconds", t.device},
                                 {"host_seconds", t.host}});
    }
  return record.dump(1) + "\n";
}

}  // namespace shardplan::validator
