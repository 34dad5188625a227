#include <cstring>

#include "comm/common_memory.h"
#include "memory/elements.h"

namespace shardplan::validator {
namespace {

class HostMemory final : public CommonMemory {
 public:
  std::unique_ptr<CommonMemory> again() const override { return host_memory(); }

  void copy(const Tensor& to, const Tensor& from) override {
    std::memcpy(to.data(), from.data(), static_cast<std::size_t>(to.bytes()));
  }

  void sum(const Tensor& to, std::span<const Tensor> parts) override {
    host::dispatch(to.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < to.numel(); ++i) {
        host::Wide<T> total = 0;
        for (const Tensor& part : parts) total += host::widen(part.as<T>()[i]);
        to.as<T>()[i] = static_cast<T>(total);
      }
    });
  }

  Mark mark(Point) override { return 0; }
  void wait(Mark) override {}
  void finish() override {}
};

}  // namespace

std::unique_ptr<CommonMemory> host_memory() {
  return std::make_unique<HostMemory>();
}

}  // namespace shardplan::validator
