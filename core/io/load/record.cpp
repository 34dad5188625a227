#include "load/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "embedded/json.h"
#include "json/reader.h"
#include "load/cluster.h"
#include "load/record_host.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordSchema = "shardplan.record/1";
constexpr std::string_view kGolden = "../tests/golden/training_steps.json";

Figures read_measured(ObjectReader& measured) {
  Figures figures;
  auto phases = measured.object("phases");
  for (std::size_t f = 0; f < kFigureCount; ++f) {
    const std::string_view name = kFigureNames[f];
    if (static_cast<Figure>(f) == Figure::step_seconds) {
      figures[f] = measured.number(name, 0, 1e9);
    } else if (f >= kPhaseFigures || phases) {
      ObjectReader& from = f < kPhaseFigures ? *phases : measured;
      if (const auto bytes = from.integer(name, 0)) figures[f] = static_cast<double>(*bytes);
    }
  }
  const auto there = [](const auto& figure) { return figure.has_value(); };
  if (std::none_of(figures.begin(), figures.end(), there))
    measured.fail("phases", "nothing was measured", "phases, allocated_peak, reserved or device");
  return figures;
}

/// Whether the time of a record is that of its job's step. Runs of a hundred iterations are handed
/// their answers. Version 1 of DeepSpeed's program asked twice for the GPU's memory in the hook of
/// every gradient that goes into a bucket: its steps took as long as that
/// (docs/evidence/measurements.md, "Programs that disturbed what they timed").
bool times_its_step(const Json& json) {
  const Json producer = json.value("producer", Json::object());
  const std::string program = producer.value("program", "");
  if (program == "tests/accuracy/measure/run_iterations.py") return false;
  const Json ranks = json.value("ranks", Json::array());
  if (program != "tests/accuracy/measure/run_deepspeed.py" ||
      producer.value("version", "") != "1" || ranks.empty())
    return true;
  const Json classes = ranks.front().value("classes", Json::object());
  return classes.value("optimizer", "") != "DeepSpeedZeroOptimizer";
}

/// A diagnostic about a part of a record, with the record's name in front.
Diagnostic named(const InputError& error, const std::string& name) {
  Diagnostic d = error.diagnostic();
  d.message = fmt::format("record '{}': {}", name, d.message);
  return d;
}

void read_one(const Json& json, const std::string& file, const std::string& path,
              const HardwareCatalog& hardware, RecordList& list) {
  std::string name = path.empty() ? fs::path(file).stem().string() : path;
  try {
    ObjectReader o(json, file, path);
    name = o.text("name").value_or(name);
    const auto schema = o.text("schema");
    if (schema && *schema != kRecordSchema)
      o.fail("schema", fmt::format("found '{}'", *schema), std::string(kRecordSchema));
    const Json* job = o.find("job");
    if (job == nullptr) o.missing("job", "a job (shardplan.job/1)");
    auto measured = o.object("measured");
    if (!measured) o.missing("measured", "an object with phases and peaks");
    const std::string directory = fs::path(file).parent_path().string();
    Record record{name, file, {}, read_measured(*measured), block_between_steps(json), false};
    if (const auto connected = o.text("connected")) {
      if (*connected != "everything")
        o.fail("connected", fmt::format("found '{}'", *connected), "everything");
      record.connected = true;
    }
    if (!times_its_step(json)) record.measured[index_of(Figure::step_seconds)].reset();
    record.job = load_job(*job, file, {.hardware = &hardware, .directory = directory});
    // What the job's folder was measured to read and write, before its step ran.
    if (auto environment = o.object("environment"))
      if (const auto nvme = read_nvme(*environment)) record.job.plan.cluster.nvme = nvme;
    list.records.push_back(std::move(record));
  } catch (const InputError& error) {
    list.bad.push_back(named(error, name));
  } catch (const OverflowError& error) {
    list.bad.push_back(
        {.file = file, .message = fmt::format("record '{}': {}", name, error.what())});
  }
}

bool is_list(const Json& json) {
  return json.is_object() && json.contains("records");
}

void read_document(const Json& json, const std::string& file, const HardwareCatalog& hardware,
                   RecordList& list) {
  if (!is_list(json)) return read_one(json, file, "", hardware, list);
  const Json& records = json.at("records");
  if (!records.is_array()) {
    list.bad.push_back({.file = file,
                        .key = "records",
                        .message = describe(records),
                        .expected = "a list of records"});
    return;
  }
  for (std::size_t i = 0; i < records.size(); ++i)
    read_one(records[i], file, fmt::format("records[{}]", i), hardware, list);
}

/// A document of another kind that lies beside the records, such as their split.
bool is_other_document(const Json& json) {
  if (!json.is_object() || is_list(json)) return false;
  const auto schema = json.find("schema");
  return schema != json.end() && schema->is_string() &&
         schema->get_ref<const std::string&>() != kRecordSchema;
}

void append(RecordList& to, RecordList from) {
  std::move(from.records.begin(), from.records.end(), std::back_inserter(to.records));
  std::move(from.bad.begin(), from.bad.end(), std::back_inserter(to.bad));
}

RecordList read_text(std::string_view text, const std::string& file,
                     const HardwareCatalog& hardware, bool in_folder) {
  RecordList list;
  try {
    const Json json = parse_json(text, file);
    if (!in_folder || !is_other_document(json)) read_document(json, file, hardware, list);
  } catch (const InputError& error) {
    list.bad.push_back(error.diagnostic());
  }
  return list;
}

RecordList read_path(const std::string& path, const HardwareCatalog& hardware, bool in_folder) {
  try {
    return read_text(read_text_file(path), path, hardware, in_folder);
  } catch (const InputError& error) {
    return {{}, {error.diagnostic()}};
  }
}

/// The *.json files below a folder, in the order of their paths.
std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->is_regular_file(error) && it->path().extension() == ".json")
      files.push_back(it->path().string());
  if (error) throw InputError({.file = folder, .message = "cannot read the folder"});
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

RecordList read_records(std::string_view text, const std::string& file,
                        const HardwareCatalog& hardware) {
  return read_text(text, file, hardware, false);
}

RecordList load_records(const std::vector<std::string>& paths, const HardwareCatalog& hardware) {
  RecordList list;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      append(list, read_path(path, hardware, false));
      continue;
    }
    const std::vector<std::string> files = json_files(path);
    if (files.empty())
      list.bad.push_back(
          {.file = path, .message = "no records in this folder", .expected = "*.json"});
    for (const std::string& file : files) append(list, read_path(file, hardware, true));
  }
  return list;
}

RecordList built_in_records(const HardwareCatalog& hardware) {
  RecordList list;
  for (const EmbeddedFile& file : embedded_files()) {
    const bool golden = file.path == kGolden;
    if (!golden && !file.path.starts_with("measurements/training/")) continue;
    const std::string name =
        golden ? "tests/golden/training_steps.json" : "data/" + std::string(file.path);
    read_document(unpacked(file.bytes), name, hardware, list);
  }
  return list;
}

}  // namespace shardplan
