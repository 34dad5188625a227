#include "models/detected_machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "hardware/resolve.h"

namespace shardplan::gui {
namespace {

namespace fs = std::filesystem;

std::string line_after(const fs::path& file, const std::string& label) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(label, 0) != 0) continue;
    const auto begin = line.find_first_not_of(" \t:", label.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

std::int64_t number_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder, error)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

/// "nvme0n1": a namespace, and neither a partition nor a hidden path of a multipath device.
bool is_nvme_namespace(const std::string& name) {
  return name.rfind("nvme", 0) == 0 && name.find('n', 4) != std::string::npos &&
         name.find('p', 4) == std::string::npos && name.find('c', 4) == std::string::npos;
}

/// The driver puts the maker's and the product line's name before what the catalogue knows.
std::string without_brand(std::string name) {
  for (const std::string brand : {"NVIDIA ", "GeForce ", "Tesla ", "Quadro "})
    if (name.rfind(brand, 0) == 0) name.erase(0, brand.size());
  return name;
}

}  // namespace

DetectedMachine detect_machine(const std::string& root) {
  const fs::path base(root);
  DetectedMachine machine;
  for (const fs::path& gpu : entries_of(base / "proc/driver/nvidia/gpus"))
    if (std::string name = line_after(gpu / "information", "Model"); !name.empty())
      machine.gpus.push_back(std::move(name));
  constexpr std::int64_t kKibi = 1024;
  machine.host_memory = number_of(line_after(base / "proc/meminfo", "MemTotal")) * kKibi;
  constexpr std::int64_t kSector = 512;  // what /sys counts in, whatever the device's own is
  for (const fs::path& device : entries_of(base / "sys/block"))
    if (is_nvme_namespace(device.filename().string()))
      machine.nvme += number_of(line_after(device / "size", "")) * kSector;
  return machine;
}

Json cluster_of(const DetectedMachine& machine, const HardwareCatalog& catalog) {
  if (machine.gpus.empty()) return nullptr;
  for (const std::string& name : machine.gpus)
    if (name != machine.gpus.front()) return nullptr;
  try {
    const ResolvedGpu resolved = resolve_gpu(without_brand(machine.gpus.front()), catalog);
    Json cluster{{"gpu", resolved.gpu.name}, {"gpus_per_node", machine.gpus.size()}};
    if (machine.host_memory > 0) cluster["host_memory_bytes"] = machine.host_memory;
    cluster["nvme"] = Json{{"bytes", machine.nvme}};
    return cluster;
  } catch (const InputError&) {
    return nullptr;
  }
}

}  // namespace shardplan::gui
