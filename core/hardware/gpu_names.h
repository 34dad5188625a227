// Which GPU of the catalogue a name means. Case, spaces, '-' and '_' do not count, and neither do
// the words NVIDIA, Tesla, GeForce, Quadro, AMD and Instinct in front.
//
//   name   = family [form] [memory]  or  family [memory] [form]
//   form   = SXM4, or SXM without its generation, PCIe, NVL
//   memory = 40GB, 40G, 40GiB, or 40 if such a GPU exists
//
// A name that several GPUs share means, among those that are not marked rare, the SXM part, and of
// several SXM parts (or when there is none) the one with the largest memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog.h"

namespace shardplan {

struct GpuChoice {
  const CatalogGpu* gpu = nullptr;  ///< nullptr: no GPU has this name
  std::string note;                 ///< what else the name could have meant; "" when unambiguous
};

/// Throws InputError (key "cluster") when GPUs of this name exist, but none with this memory.
GpuChoice choose_gpu(std::string_view name, const HardwareCatalog& catalog);

/// Every spelling worth suggesting: families, families with their memory, full names.
std::vector<std::string> gpu_spellings(const HardwareCatalog& catalog);

}  // namespace shardplan
