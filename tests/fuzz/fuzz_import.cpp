#include <cstddef>
#include <cstdint>

#include "import_front_end.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardplan::run_import({reinterpret_cast<const char*>(data), size});
  return 0;
}
