#include "host_check/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "engine/offload/offload.h"
#include "kernels/host/crew/crew.h"
#include "kernels/host/crew/host_crew.h"
#include "memory/arena.h"
#include "memory/host_pages.h"

namespace shardplan::validator {
namespace {

using Clock = std::chrono::steady_clock;

double median_seconds(int passes, const std::function<void()>& pass) {
  pass();  // pages and caches
  std::vector<double> seconds;
  for (int i = 0; i < passes; ++i) {
    const auto start = Clock::now();
    pass();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Arrays of fp32, written first by the threads that use them.
struct Streams {
  explicit Streams(std::int64_t n, host::Crew& crew)
      : count(n),
        pages(3 * n * 4, "the arrays that are copied"),
        arena(pages.address(), 3 * n * 4) {
    for (Tensor& x : arrays) {
      x = arena.allocate("array", Category::other, DType::f32, {n});
      crew.split(n, [&](std::int64_t first, std::int64_t part) {
        std::memset(x.slice(first, part).data(), 0, static_cast<std::size_t>(4 * part));
      });
    }
  }
  std::int64_t count;
  HostPages pages;
  Arena arena;
  Tensor arrays[3];
};

void measure_streams(const HostSpeedOptions& options, std::vector<HostRate>& rates) {
  host::Crew crew(host::cpus_of({0, 1}));
  Streams s(options.elements, crew);
  const auto n = static_cast<double>(s.count);
  const Tensor *a = &s.arrays[0], *b = &s.arrays[1], *c = &s.arrays[2];
  rates.push_back({"copy", 8 * n, n, median_seconds(options.passes, [&] {
                     crew.split(s.count, [&](std::int64_t first, std::int64_t part) {
                       std::memcpy(a->slice(first, part).data(), b->slice(first, part).data(),
                                   static_cast<std::size_t>(4 * part));
                     });
                   })});
  rates.push_back({"triad", 12 * n, n, median_seconds(options.passes, [&] {
                     crew.split(s.count, [&](std::int64_t first, std::int64_t part) {
                       float* to = a->as<float>() + first;
                       const float *x = b->as<float>() + first, *y = c->as<float>() + first;
                       for (std::int64_t i = 0; i < part; ++i) to[i] = x[i] + 3 * y[i];
                     });
                   })});
}

struct Kind {
  const char* name;
  DType dtype, states;
  bool master;
};
constexpr Kind kKinds[] = {{"bf16-master", DType::bf16, DType::f32, true},
                           {"fp32", DType::f32, DType::f32, false},
                           {"bf16-pure", DType::bf16, DType::bf16, false},
                           {"fp16-master", DType::f16, DType::f32, true}};

/// All operands of an update, and what it reads and writes of an element.
class Operands {
 public:
  Operands(const Kind& kind, std::int64_t count, HostCompute& cores)
      : count_(count),
        pages_(16 * count, "the states that are updated"),
        arena_(pages_.address(), 16 * count) {
    const auto make = [&](DType dtype) {
      const Tensor x = arena_.allocate("state", Category::other, dtype, {count});
      for_each_bucket(count, [&](auto, auto&& range) { cores.zero(range(x)); });
      bytes_ += size_of(dtype);
      return x;
    };
    all_.gradient = make(kind.dtype);
    all_.parameter = make(kind.dtype);
    all_.first_moment = make(kind.states);
    all_.second_moment = make(kind.states);
    bytes_ += 2 * size_of(kind.states) + (kind.master ? 0 : size_of(kind.dtype));
    if (kind.master) all_.master = make(DType::f32);
    if (kind.master) bytes_ += size_of(DType::f32);
    all_.clipping = {{reinterpret_cast<std::uintptr_t>(&norm_), DType::f32, Shape{1}}, 1, 1};
    all_.learning_rate = 1e-4F;
  }
  void update(HostCompute& cores) {
    ++all_.step;
    for_each_bucket(count_, [&](auto, auto&& range) {
      AdamW o = all_;
      for (Tensor* x : {&o.gradient, &o.parameter, &o.first_moment, &o.second_moment, &o.master})
        *x = range(*x);
      cores.adamw(o);
    });
  }
  double bytes() const { return static_cast<double>(bytes_ * count_); }

 private:
  std::int64_t count_, bytes_ = 0;
  HostPages pages_;
  Arena arena_;
  float norm_ = 1;
  AdamW all_;
};

}  // namespace

HostSpeed measure_host_speed(const HostSpeedOptions& options) {
  HostSpeed speed;
  measure_streams(options, speed.rates);
  const auto cores = make_host_crew({0, 1});
  speed.cores = cores->description();
  for (const Kind& kind : kKinds) {
    Operands operands(kind, options.elements, *cores);
    speed.rates.push_back({fmt::format("AdamW, {}", kind.name), operands.bytes(),
                           static_cast<double>(options.elements),
                           median_seconds(options.passes, [&] { operands.update(*cores); })});
  }
  return speed;
}

}  // namespace shardplan::validator
