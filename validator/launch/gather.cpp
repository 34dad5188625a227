#include "launch/gather.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace shardplan::validator {
namespace {

Json json_of(const CategoryBytes& bytes) {
  return Json(std::vector<std::int64_t>(bytes.begin(), bytes.end()));
}
CategoryBytes bytes_of(const Json& j) {
  return j.get<CategoryBytes>();
}

Json json_of(const MemoryProfile& m) {
  Json phases = Json::array();
  for (const PhaseMemory& p : m.phases)
    phases.push_back({{"peak", p.peak}, {"end", p.end}, {"at_peak", json_of(p.at_peak)}});
  return {{"phases", phases}, {"resident", json_of(m.resident)}};
}
MemoryProfile profile_of(const Json& j) {
  MemoryProfile m;
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    const Json& phase = j.at("phases").at(p);
    m.phases[p] = {phase.at("peak"), phase.at("end"), bytes_of(phase.at("at_peak"))};
  }
  m.resident = bytes_of(j.at("resident"));
  return m;
}

Json json_of(const HostBytes& b) {
  return {b.pinned, b.pageable, b.nvme};
}
HostBytes host_of(const Json& j) {
  return {j.at(0), j.at(1), j.at(2)};
}

Json json_of(const StorageUse& use) {
  return {use.read, use.written, use.busy_seconds};
}
StorageUse use_of(const Json& j) {
  return {j.at(0), j.at(1), j.at(2)};
}

Json json_of(const SavedBytes& b) {
  return {b.device_peak, b.staging, b.shard, b.whole};
}
SavedBytes saved_of(const Json& j) {
  return {j.at(0), j.at(1), j.at(2), j.at(3)};
}

Json json_of(const SaveReport& r) {
  return {r.count, json_of(r.bytes), r.all_files, r.seconds, r.folder};
}
SaveReport save_of(const Json& j) {
  return {j.at(0), saved_of(j.at(1)), j.at(2), j.at(3), j.at(4)};
}

}  // namespace

Json json_of(const RankReport& r) {
  Json overheads = Json::array();
  for (const Overhead& o : r.overheads)
    overheads.push_back({o.name, static_cast<int>(o.category), o.bytes});
  return {{"rank", r.rank},
          {"node", r.node},
          {"device", {{"name", r.device.name}, {"capacity", r.device.capacity_bytes}}},
          {"versions", r.device.versions},
          {"planned", json_of(r.planned)},
          {"measured", json_of(r.measured)},
          {"arena_bytes", r.arena_bytes},
          {"overheads", overheads},
          {"device_bytes", r.device_bytes},
          {"planned_host", json_of(r.planned_host)},
          {"host", json_of(r.host)},
          {"host_growth", r.host_growth},
          {"host_compute", r.host_compute},
          {"storage", r.storage},
          {"storage_use", json_of(r.storage_use)},
          {"use_in_steps", json_of(r.use_in_steps)},
          {"planned_save", json_of(r.planned_save)},
          {"save", json_of(r.save)},
          {"step_seconds", r.step_seconds},
          {"waited_seconds", r.waited_seconds},
          {"phase_seconds", r.phase_seconds}};
}

RankReport rank_report_of(const Json& j) {
  RankReport r;
  r.rank = j.at("rank");
  r.node = j.at("node");
  r.device = {j.at("device").at("name"), j.at("device").at("capacity"), j.at("versions")};
  r.planned = profile_of(j.at("planned"));
  r.measured = profile_of(j.at("measured"));
  r.arena_bytes = j.at("arena_bytes");
  for (const Json& o : j.at("overheads"))
    r.overheads.push_back({o.at(0), static_cast<Category>(o.at(1).get<int>()), o.at(2)});
  r.device_bytes = j.at("device_bytes");
  r.planned_host = host_of(j.at("planned_host"));
  r.host = host_of(j.at("host"));
  r.host_growth = j.at("host_growth");
  r.host_compute = j.at("host_compute");
  r.storage = j.at("storage");
  r.storage_use = use_of(j.at("storage_use"));
  r.use_in_steps = use_of(j.at("use_in_steps"));
  r.planned_save = saved_of(j.at("planned_save"));
  r.save = save_of(j.at("save"));
  r.step_seconds = j.at("step_seconds");
  r.waited_seconds = j.at("waited_seconds");
  r.phase_seconds = j.at("phase_seconds");
  return r;
}

void gather_reports(Lookout& lookout, RunReport& report) {
  Json mine = Json::array();
  for (const RankReport& r : report.ranks) mine.push_back(json_of(r));
  const std::vector<Json> all = lookout.gather(mine);
  for (std::size_t p = 1; p < all.size(); ++p)
    for (const Json& r : all[p]) report.ranks.push_back(rank_report_of(r));
}

}  // namespace shardplan::validator
