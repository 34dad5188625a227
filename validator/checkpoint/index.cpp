#include "checkpoint/index.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "base/diagnostic.h"
#include "checkpoint/folder.h"
#include "checkpoint/identity.h"
#include "json/reader.h"

namespace shardplan::validator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "shardplan.checkpoint/1";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Json files_json(const std::vector<IndexedFile>& files) {
  Json out = Json::array();
  for (const IndexedFile& file : files) out.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return out;
}

/// Throws for what is missing, so that a damaged index is no checkpoint of step 0.
std::int64_t needed(ObjectReader& o, std::string_view key, std::int64_t least) {
  const auto value = o.integer(key, least, kMost);
  if (!value) o.missing(key, "an integer");
  return *value;
}

ObjectReader needed_object(ObjectReader& o, std::string_view key) {
  auto value = o.object(key);
  if (!value) o.missing(key, "an object");
  return *value;
}

double needed_number(ObjectReader& o, std::string_view key) {
  const auto value = o.number(key);
  if (!value) o.missing(key, "a number");
  return *value;
}

Json pending_json(const PendingUpdate& p) {
  Json out{{"squared_norm", p.squared_norm},
           {"inverse_scale", p.inverse_scale},
           {"learning_rate", p.rate.learning_rate},
           {"update", p.step}};
  if (p.rate.momentum) out["betas"] = {p.rate.momentum->beta1, p.rate.momentum->beta2};
  return out;
}

std::optional<PendingUpdate> read_pending(ObjectReader& index) {
  auto o = index.object("pending_update");
  if (!o) return std::nullopt;
  PendingUpdate p{.squared_norm = needed_number(*o, "squared_norm"),
                  .inverse_scale = needed_number(*o, "inverse_scale"),
                  .rate = {needed_number(*o, "learning_rate"), std::nullopt},
                  .step = needed(*o, "update", 1)};
  const Json* const betas = o->array("betas");
  if (betas == nullptr) return p;
  if (betas->size() != 2 || !(*betas)[0].is_number() || !(*betas)[1].is_number())
    o->fail("betas", "found " + betas->dump(), "two numbers");
  p.rate.momentum = {(*betas)[0].get<double>(), (*betas)[1].get<double>()};
  return p;
}

TrainingState read_state(ObjectReader& index) {
  TrainingState state;
  state.steps = needed(index, "step", 1);
  state.updates = needed(index, "updates", 0);
  ObjectReader scaler = needed_object(index, "loss_scale");
  const auto scale = scaler.number("scale", 0);
  if (!scale) scaler.missing("scale", "a number");
  state.scaler = {*scale, needed(scaler, "patience", 0), needed(scaler, "step", 0),
                  needed(scaler, "last_overflow", -1)};
  state.pending = read_pending(index);
  return state;
}

void check_files(ObjectReader& index, const std::string& folder, std::int64_t ranks) {
  const Json* const files = index.array("shards");
  if (files == nullptr || files->empty())
    index.fail("shards", "this checkpoint has whole weights alone, which --weights begins with",
               "one of --save-form sharded or both");
  if (std::ssize(*files) != ranks)
    index.fail("shards", fmt::format("{} files for {} ranks", files->size(), ranks),
               fmt::format("{} files", ranks));
  for (std::size_t i = 0; i < files->size(); ++i) {
    ObjectReader entry((*files)[i], index.file(), fmt::format("shards[{}]", i));
    const auto name = entry.text("name");
    if (!name) entry.missing("name", "a file of this folder");
    const std::int64_t bytes = needed(entry, "bytes", 0);
    const std::string path = (fs::path(folder) / *name).string();
    std::error_code error;
    const auto found = fs::file_size(path, error);
    if (error)
      throw InputError(
          {.file = path,
           .key = entry.path(),
           .message = fmt::format("a file of the checkpoint is missing ({})", error.message()),
           .expected = fmt::format("{} bytes", bytes)});
    if (static_cast<std::int64_t>(found) != bytes)
      throw InputError({.file = path,
                        .key = entry.path_of("bytes"),
                        .message = fmt::format("the file has {} bytes", found),
                        .expected = fmt::format("{}, as it was written", bytes)});
  }
}

}  // namespace

std::string index_text(const EngineJob& job, const Tokens& tokens, const TrainingState& state,
                       const std::vector<IndexedFile>& shards,
                       const std::vector<IndexedFile>& whole) {
  const Workload& w = job.plan().workload;
  const LossScaler::State& s = state.scaler;
  const std::int64_t samples =
      state.steps * w.gradient_accumulation * w.micro_batch * job.plan().replicas();
  Json index{{"schema", kSchema},
             {"step", state.steps},
             {"updates", state.updates},
             {"samples", samples},
             {"loss_scale",
              {{"scale", s.scale},
               {"patience", s.patience},
               {"step", s.step},
               {"last_overflow", s.last_overflow}}},
             {"run", identity_of(job)},
             {"data", identity_of(tokens)},
             {"shards", files_json(shards)},
             {"whole", files_json(whole)}};
  if (state.pending) index["pending_update"] = pending_json(*state.pending);
  return index.dump(1) + "\n";
}

Checkpoint open_checkpoint(const EngineJob& job, const Tokens& tokens, const std::string& path) {
  Checkpoint found{.folder = latest_checkpoint(path), .state = {}};
  const std::string file = (fs::path(found.folder) / kIndexName).string();
  const Json document = read_json_file(file);
  ObjectReader index(document, file);
  if (index.text("schema") != kSchema)
    index.fail("schema", "this is no index of a checkpoint", kSchema);
  found.state = read_state(index);
  for (const auto& [key, wanted] :
       {std::pair{"run", identity_of(job)}, std::pair{"data", identity_of(tokens)}}) {
    if (!index.object(key)) index.missing(key, "an object");
    check_same(file, key, *index.find(key), wanted);
  }
  check_files(index, found.folder, job.plan().cluster.world());
  if (job.run.steps <= found.state.steps)
    throw InputError({.file = job.file,
                      .key = "run.steps",
                      .message = fmt::format("{} steps, and the checkpoint {} has made {}",
                                             job.run.steps, found.folder, found.state.steps),
                      .expected = fmt::format("more than {}", found.state.steps)});
  return found;
}

}  // namespace shardplan::validator
