#include "kernel_check/rates.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/cuda.h"
#include "memory/arena.h"

namespace shardplan::validator {
namespace {

constexpr int kRepeats = 5;

/// GPT-2's heads, wide heads, odd ones that no library takes, grouped keys; short to long.
const Heads kShapes[] = {
    {.batch = 8, .sequence = 512, .query_heads = 12, .key_value_heads = 12, .head_dim = 64},
    {.batch = 8, .sequence = 1024, .query_heads = 12, .key_value_heads = 12, .head_dim = 64},
    {.batch = 2, .sequence = 2048, .query_heads = 16, .key_value_heads = 16, .head_dim = 64},
    {.batch = 2, .sequence = 1024, .query_heads = 32, .key_value_heads = 8, .head_dim = 64},
    {.batch = 2, .sequence = 2048, .query_heads = 32, .key_value_heads = 4, .head_dim = 64},
    {.batch = 4, .sequence = 1024, .query_heads = 32, .key_value_heads = 32, .head_dim = 80},
    {.batch = 4, .sequence = 512, .query_heads = 32, .key_value_heads = 32, .head_dim = 128},
    {.batch = 1, .sequence = 2048, .query_heads = 16, .key_value_heads = 8, .head_dim = 128},
    {.batch = 1, .sequence = 2048, .query_heads = 8, .key_value_heads = 4, .head_dim = 256},
};

double median_seconds(Backend& device, const std::function<void()>& operation) {
  const Event begin = device.new_event(), end = device.new_event();
  operation();  // the first call loads code
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    device.record(begin, Stream::compute);
    operation();
    device.record(end, Stream::compute);
    device.synchronize();
    seconds.push_back(device.seconds_between(begin, end));
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return seconds[kRepeats / 2];
}

nlohmann::json row(const Heads& heads, const char* form, double seconds) {
  return {{"kind", "attention"},
          {"form", form},
          {"dtype", "float32"},
          {"batch", heads.batch},
          {"heads", heads.query_heads},
          {"key_heads", heads.key_value_heads},
          {"sequence", heads.sequence},
          {"head_width", heads.head_dim},
          {"causal", true},
          {"by_rows", true},
          {"seconds", seconds}};
}

void add_attention(nlohmann::json& rates, Backend& device, Arena& arena, const Heads& heads) {
  const Arena::Scope scope(arena);
  const auto matrix = [&](const char* name, std::int64_t columns) {
    const Tensor x =
        arena.allocate(name, Category::activations, DType::f32, Shape{heads.rows(), columns});
    device.fill_normal(x, 1.0F, 1, 0);
    return x;
  };
  const Tensor qkv = matrix("qkv", heads.packed_width()),
               dqkv = matrix("dqkv", heads.packed_width()),
               out = matrix("out", heads.query_width()), dout = matrix("dout", heads.query_width()),
               lse = arena.allocate("lse", Category::activations, DType::f32,
                                    Shape{heads.batch, heads.query_heads, heads.sequence});
  const AttentionForward forward{.heads = heads, .out = out, .lse = lse, .qkv = qkv};
  const AttentionBackward backward{
      .heads = heads, .dqkv = dqkv, .dout = dout, .out = out, .lse = lse, .qkv = qkv};
  rates.push_back(
      row(heads, "forward", median_seconds(device, [&] { device.attention_forward(forward); })));
  rates.push_back(
      row(heads, "backward", median_seconds(device, [&] { device.attention_backward(backward); })));
}

}  // namespace

std::string rates_record() {
  constexpr std::int64_t kArena = std::int64_t{1} << 31;
  const auto device = make_cuda_backend(0);
  Arena arena(device->allocate(kArena), kArena);
  StepShapes shapes;
  shapes.dtype = DType::f32;
  for (const Heads& heads : kShapes)
    if (heads.rows() * heads.query_heads > shapes.heads.rows() * shapes.heads.query_heads)
      shapes.heads = heads;
  const std::int64_t workspace = device->workspace_bytes(shapes);
  device->use_workspace(
      arena.allocate("workspace", Category::workspace, DType::i8, Shape{workspace}));

  nlohmann::json record{{"schema", "shardplan.rates/1"},
                        {"producer", {{"program", "shardplan-kernel-check rates"}}}};
  const DeviceInfo info = device->info();
  record["environment"]["gpu"] = info.name;
  record["environment"]["gpu_bytes"] = info.capacity_bytes;
  for (const auto& [name, version] : info.versions) record["environment"][name] = version;
  record["rates"] = nlohmann::json::array();
  for (const Heads& heads : kShapes) add_attention(record["rates"], *device, arena, heads);
  return record.dump(1) + "\n";
}

}  // namespace shardplan::validator
