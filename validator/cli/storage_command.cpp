#include "cli/storage_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "json/document.h"
#include "kernels/cuda.h"
#include "storage/movers.h"
#include "storage/rates.h"

namespace shardplan::validator {
namespace {

constexpr int kUsage = 2;

struct StorageArguments {
  StorageRatesOptions options;
  std::string format = "text";
  std::string io;
  bool buffered = false;
};

std::vector<std::string> path_names() {
  std::vector<std::string> names{"auto"};
  for (const IoPathRow& path : io_paths()) names.emplace_back(path.name);
  return names;
}

void add_storage_options(CLI::App& app, StorageArguments& a) {
  StorageRatesOptions& o = a.options;
  app.add_option("FOLDER", o.folder, "a folder of the disk")->required();
  app.add_option("--bytes", o.bytes, "size of the file that is read and written; default: 4 GiB")
      ->check(CLI::Range(std::int64_t{1} << 28, std::int64_t{1} << 50));
  app.add_option("--seconds", o.seconds, "of each measurement; default: 1")
      ->check(CLI::Range(0.01, 1000.0));
  app.add_option("--chunk", o.chunk_bytes, "bytes of a request; default: 256 KiB, 1 and 4 MiB")
      ->check([](const std::string& text) {
        const std::int64_t bytes = std::strtoll(text.c_str(), nullptr, 10);
        return bytes > 0 && bytes % kStorageBlock == 0
                   ? std::string()
                   : fmt::format("{} is no multiple of {}", text, kStorageBlock);
      });
  app.add_option("--depth", o.queue_depths, "requests at once; default: 4, 16 and 32")
      ->check(CLI::Range(1, 1024));
  app.add_option(
         "--io", a.io,
         "auto (the one that a run takes), io_uring, threads or cufile (between the file and the "
         "first GPU): this one alone, whose rates a cluster file has then; default: all that there "
         "are")
      ->check(CLI::IsMember(path_names()));
  app.add_option("--cufile", o.cufile,
                 "libcufile.so of CUDA or of the Python package nvidia-cufile; default: as the "
                 "loader finds it");
  app.add_flag("--buffered", a.buffered, "through the page cache");
  app.add_option("--format", a.format,
                 "text, json, or cluster: the fields of a cluster file (docs/reference/job.md)")
      ->check(CLI::IsMember({"text", "json", "cluster"}));
  app.footer("Example: shardplan-validate storage /mnt/nvme --format cluster");
}

/// Null where it is not asked for, or there is none.
std::unique_ptr<Backend> first_gpu(const StorageRatesOptions& options) {
  if (options.only.value_or(IoPath::cufile) != IoPath::cufile) return nullptr;
  return cuda_device_count() > 0 ? make_cuda_backend(0) : nullptr;
}

void print_head() {
  fmt::print("  {:<10}{:>12}{:>8}{:>10}{:>10}{:>10}  GB/s\n", "", "request", "at once", "read",
             "write", "both");
}

void print_row(const StorageRate& r) {
  fmt::print("  {:<10}{:>12}{:>8}{:>10.2f}{:>10.2f}{:>10.2f}\n", r.how, format_bytes(r.chunk_bytes),
             r.queue_depth, r.read / 1e9, r.write / 1e9, r.both / 1e9);
  std::fflush(stdout);
}

/// What the planner takes for reading and then writing with the requests of a run: lower where the
/// disk does both at once more slowly than that. The fastest of many rows would be the luckiest
/// one.
Json cluster_fields(const StorageRates& rates) {
  const StorageRate& usual = rates.usual();
  const double share = usual.share_of_both();
  return {{"nvme",
           {{"bytes", rates.capacity},
            {"read_bandwidth", std::llround(usual.read * share)},
            {"write_bandwidth", std::llround(usual.write * share)}}}};
}

Json rates_json(const StorageRates& rates) {
  Json rows = Json::array();
  for (const StorageRate& r : rates.rates)
    rows.push_back({{"io", r.how},
                    {"chunk_bytes", r.chunk_bytes},
                    {"queue_depth", r.queue_depth},
                    {"read_bandwidth", r.read},
                    {"write_bandwidth", r.write},
                    {"both_bandwidth", r.both}});
  Json out{{"file", rates.file}, {"rates", rows}, {"cluster", cluster_fields(rates)}};
  if (!rates.cufile.empty()) out["cufile"] = rates.cufile;
  for (const AbsentPath& path : rates.absent) out["absent"][path.how] = path.why;
  return out;
}

void print_end(const StorageRates& rates) {
  const StorageRate& best = rates.best();
  if (!rates.absent.empty()) fmt::print("\n");
  for (const AbsentPath& path : rates.absent) fmt::print("  without {}: {}\n", path.how, path.why);
  if (!rates.cufile.empty()) fmt::print("\n  cufile: {}\n", rates.cufile);
  fmt::print("\n  {}; fastest with both: {}, chunk_bytes {}, queue_depth {}\n", rates.file,
             best.how, best.chunk_bytes, best.queue_depth);
}

}  // namespace

int run_storage_command(int argc, char** argv) {
  StorageArguments a;
  CLI::App app("Times reading and writing in a folder as a step with states on NVMe does.",
               "shardplan-validate storage");
  add_storage_options(app, a);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "shardplan-validate: {}\nRun with --help for an example.\n", e.what());
    return kUsage;
  }
  a.options.direct = !a.buffered;
  if (a.io == "auto") a.options.only = IoPath::automatic;
  for (const IoPathRow& path : io_paths())
    if (path.name == a.io) a.options.only = path.path;
  const std::unique_ptr<Backend> gpu = first_gpu(a.options);
  a.options.device = gpu.get();
  const bool text = a.format == "text";
  bool first = true;  // a folder that cannot be used has no table
  const StorageRates rates = measure_storage(a.options, [&](const StorageRate& row) {
    if (!text) return;
    if (std::exchange(first, false)) print_head();
    print_row(row);
  });
  if (text) {
    print_end(rates);
  } else {
    fmt::print("{}\n", (a.format == "json" ? rates_json(rates) : cluster_fields(rates)).dump(1));
  }
  return 0;
}

}  // namespace shardplan::validator
