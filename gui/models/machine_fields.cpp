#include "models/machine_fields.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "job/fields.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

constexpr double kGibibyte = static_cast<double>(kGiB);
constexpr double kMost = 1e18;  // the largest byte count and rate that a job may have

using Value = std::optional<double>;

Value of_bytes(const std::optional<Bytes>& bytes) {
  return bytes ? Value(static_cast<double>(bytes->count())) : std::nullopt;
}

Bytes to_bytes(double value) {
  return Bytes(static_cast<std::int64_t>(value));
}

Value positive(double value) {
  return value > 0 ? Value(value) : std::nullopt;
}

}  // namespace

QString MachineField::text_of(const Cluster& cluster) const {
  const Value value = read(cluster);
  if (!value) return {};
  return whole ? QString::number(static_cast<qint64>(*value))
               : QString::number(*value / unit, 'g', 6);
}

QString MachineField::standing(const Session& session) const {
  const Cluster* cluster = session.answer().the_cluster();
  if (cluster == nullptr) return {};
  if (field_of(session.document().json(), pointer)) return MachineFields::given();
  return read(*cluster) ? known(*cluster) : MachineFields::not_known();
}

bool MachineField::commit(Session& session, const QString& typed) const {
  const Cluster* now = session.answer().the_cluster();
  if (now == nullptr || !can_be_said(*now)) return false;
  if (typed == text_of(*now)) return true;
  bool is_number = false;
  const double value = typed.toDouble(&is_number) * unit;
  const bool is_figure =
      is_number && value > 0 && value < kMost && (!whole || value == std::floor(value));
  if (!is_figure && !(typed.isEmpty() && may_be_unknown)) return false;
  const Value figure = is_figure ? Value(value) : std::nullopt;
  session.change_cluster([&](Cluster& c) { write(c, figure); }, own_gpu, key);
  return true;
}

QString MachineFields::given() {
  return tr("given");
}

QString MachineFields::not_known() {
  return tr("not known");
}

QString MachineFields::sources(const Cluster& cluster, const HardwareCatalog& catalog) {
  const CatalogGpu* entry = find_gpu(catalog, cluster.gpu.name);
  if (entry == nullptr) return {};
  QStringList lines;
  for (const std::string& source : entry->sources) lines.push_back(text(source));
  return tr("%1, by the catalogue:").arg(text(entry->gpu.name)) + QLatin1Char('\n') +
         lines.join(QLatin1Char('\n'));
}

void MachineFields::add_counts(std::vector<MachineField>& fields) {
  const auto add = [&](const QString& label, const char* pointer, std::int64_t Cluster::*member) {
    fields.push_back(
        {.label = label,
         .pointer = pointer,
         .whole = true,
         .read = [member](const Cluster& c) { return Value(static_cast<double>(c.*member)); },
         .write = [member](Cluster& c,
                           Value v) { c.*member = static_cast<std::int64_t>(v.value_or(1)); },
         .known = [](const Cluster&) { return given(); }});  // by the machine's name
  };
  add(tr("GPUs per node"), "/cluster/gpus_per_node", &Cluster::gpus_per_node);
  add(tr("Nodes"), "/cluster/nodes", &Cluster::nodes);
}

void MachineFields::add_gpu(std::vector<MachineField>& fields) {
  const auto add = [&](const QString& label, const char* pointer, const char* name, double unit,
                       auto read, auto write) {
    fields.push_back({.label = label,
                      .pointer = pointer,
                      .unit = unit,
                      .own_gpu = true,
                      .read = read,
                      .write = write,
                      .known = [name = std::string(name)](const Cluster& c) {
                        return is_unverified(c.gpu.unverified, name) ? tr("catalogue, not verified")
                                                                     : tr("catalogue");
                      }});
  };
  add(
      tr("Usable memory per GPU, GiB"), "/cluster/gpu/usable_bytes", "usable_bytes", kGibibyte,
      [](const Cluster& c) { return Value(static_cast<double>(c.gpu.usable.count())); },
      [](Cluster& c, Value v) {
        c.gpu.usable = to_bytes(v.value_or(0));
        c.gpu.capacity = std::max(c.gpu.capacity, c.gpu.usable);
      });
  fields.back().known = [](const Cluster& c) {
    return c.gpu.usable_source == Source::assumed ? tr("catalogue, not verified") : tr("catalogue");
  };
  add(
      tr("Memory bandwidth, GB/s"), "/cluster/gpu/memory_bandwidth", "memory_bandwidth", kGiga,
      [](const Cluster& c) { return c.gpu.memory_bandwidth; },
      [](Cluster& c, Value v) { c.gpu.memory_bandwidth = v; });
  add(
      tr("Dense bf16 per GPU, TFLOP/s"), "/cluster/gpu/peak_flops/bf16", "peak_flops.bf16", kTera,
      [](const Cluster& c) { return c.gpu.peak[PeakRate::bf16]; },
      [](Cluster& c, Value v) { c.gpu.peak[PeakRate::bf16] = v; });
  add(
      tr("GPU to host, GB/s"), "/cluster/gpu/pcie_bandwidth", "pcie_bandwidth", kGiga,
      [](const Cluster& c) { return c.gpu.pcie_bandwidth; },
      [](Cluster& c, Value v) { c.gpu.pcie_bandwidth = v; });
}

void MachineFields::add_links(std::vector<MachineField>& fields) {
  const auto add = [&](const QString& label, const char* pointer, double Cluster::*member) {
    fields.push_back({.label = label,
                      .pointer = pointer,
                      .unit = kGiga,
                      .read = [member](const Cluster& c) { return positive(c.*member); },
                      .write =
                          [member](Cluster& c, Value v) {
                            c.*member = v.value_or(0);
                            c.interconnect_source = Source::measured;
                          },
                      .known =
                          [](const Cluster& c) {
                            return c.interconnect_source == Source::measured ? tr("catalogue")
                                                                             : tr("assumed");
                          }});
  };
  add(tr("Between GPUs, GB/s"), "/cluster/interconnect/intra_node_bandwidth",
      &Cluster::intra_node_bandwidth);
  add(tr("Between nodes, GB/s per GPU"), "/cluster/interconnect/inter_node_bandwidth",
      &Cluster::inter_node_bandwidth);
}

void MachineFields::add_node(std::vector<MachineField>& fields) {
  const auto add = [&](const QString& label, const char* pointer, const char* key, double unit,
                       auto read, auto write) {
    fields.push_back({.label = label,
                      .pointer = pointer,
                      .unit = unit,
                      .key = key,
                      .read = read,
                      .write = write,
                      .known = [](const Cluster&) { return tr("catalogue"); },
                      .may_be_unknown = true});
  };
  add(
      tr("Host memory per node, GiB"), "/cluster/host_memory_bytes", "host_memory_bytes", kGibibyte,
      [](const Cluster& c) { return of_bytes(c.host_memory); },
      [](Cluster& c, Value v) { c.host_memory = v ? std::optional(to_bytes(*v)) : std::nullopt; });
  add(
      tr("NVMe per node, GiB"), "/cluster/nvme/bytes", "nvme", kGibibyte,
      [](const Cluster& c) { return c.nvme ? of_bytes(c.nvme->capacity) : std::nullopt; },
      [](Cluster& c, Value v) {
        if (!v) return c.nvme.reset();
        if (!c.nvme) c.nvme.emplace();
        c.nvme->capacity = to_bytes(*v);
      });
  const auto add_rate = [&](const QString& label, const char* pointer,
                            std::optional<double> Nvme::*member) {
    add(
        label, pointer, "nvme", kGiga,
        [member](const Cluster& c) { return c.nvme ? (*c.nvme).*member : std::nullopt; },
        [member](Cluster& c, Value v) { (*c.nvme).*member = v; });
    fields.back().applies = [](const Cluster& c) { return c.nvme.has_value(); };
  };
  add_rate(tr("NVMe reads, GB/s"), "/cluster/nvme/read_bandwidth", &Nvme::read_bandwidth);
  add_rate(tr("NVMe writes, GB/s"), "/cluster/nvme/write_bandwidth", &Nvme::write_bandwidth);
  add(
      tr("Price per node and hour"), "/cluster/price_per_hour", "price_per_hour", 1,
      [](const Cluster& c) { return c.price_per_hour; },
      [](Cluster& c, Value v) { c.price_per_hour = v; });
}

QString MachineFields::help_of(const std::string& pointer) {
  const std::pair<const char*, QString> kHelp[] = {
      {"gpus_per_node",
       tr("GPUs that one machine has: they share its host memory and fast links.")},
      {"nodes", tr("Machines that work on the job together.")},
      {"usable_bytes",
       tr("What one process can allocate on a GPU: the verdict compares the job with it.")},
      {"memory_bandwidth",
       tr("Bytes per second that a GPU reads from its memory: what most kernels "
          "without products wait for.")},
      {"bf16", tr("Products per second in bf16 without sparsity, as the datasheet says: what "
                  "computing waits for.")},
      {"pcie_bandwidth",
       tr("Bytes per second between a GPU and the host, one direction: what offload waits for.")},
      {"intra_node_bandwidth",
       tr("Bytes per second between two GPUs of a node, one direction: NVLink or PCIe.")},
      {"inter_node_bandwidth",
       tr("Bytes per second of each GPU between nodes, one direction: the network.")},
      {"host_memory_bytes",
       tr("Memory of one machine for what is kept off the GPUs. Empty: not known.")},
      {"nvme/bytes", tr("Room on the machine's NVMe for what is kept there. Empty: not known.")},
      {"read_bandwidth", tr("Bytes per second that the NVMe of a machine reads.")},
      {"write_bandwidth", tr("Bytes per second that the NVMe of a machine writes.")},
      {"price_per_hour",
       tr("What one machine costs an hour, in any currency. Empty: the list price "
          "where there is one.")}};
  for (const auto& [end, help] : kHelp)
    if (pointer.ends_with(end)) return help;
  return {};
}

std::vector<MachineField> MachineFields::all() {
  std::vector<MachineField> fields;
  add_counts(fields);
  add_gpu(fields);
  add_links(fields);
  add_node(fields);
  for (MachineField& field : fields) field.help = help_of(field.pointer);
  return fields;
}

}  // namespace shardplan::gui
