// shardplan-kernel-check: are the CUDA back end's operations right, and how fast are they?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "base/diagnostic.h"
#include "device/errors.h"
#include "kernel_check/checks.h"
#include "kernel_check/product_rates.h"
#include "kernel_check/rates.h"
#include "kernel_check/speed.h"
#include "kernels/cuda.h"
#include "kernels/host/host_backend.h"

namespace shardplan::validator {
namespace {

using Check = void (*)(Laboratory&, DType);

const std::map<std::string, Check> kFamilies = {{"activations", check_activations},
                                                {"adamw", check_adamw},
                                                {"adapters", check_adapters},
                                                {"attention", check_attention},
                                                {"elements", check_elements},
                                                {"embedding", check_embedding},
                                                {"experts", check_experts},
                                                {"fp8", check_fp8},
                                                {"head-norms", check_head_norms},
                                                {"linear", check_linear},
                                                {"loss", check_loss},
                                                {"norms", check_norms},
                                                {"rotary", check_rotary},
                                                {"sums", check_sums}};

int run_checks(const std::vector<std::string>& wanted) {
  constexpr std::int64_t kArena = std::int64_t{1} << 30;
  const auto device = make_cuda_backend(0);
  const auto reference = make_host_backend();
  Laboratory lab(*device, *reference, kArena, largest_checked());
  for (const auto& [name, check] : kFamilies) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) check(lab, dtype);
  }
  fmt::print("{:<44} {:<34} {:<5} {:>10} {:>10} {:>10} {:>7}\n", "operation", "shape", "type",
             "relative", "largest", "allowed", "repeats");
  std::size_t failed = 0;
  for (const Finding& finding : lab.findings()) {
    fmt::print("{:<44} {:<34} {:<5} {:>10.2e} {:>10.2e} {:>10.2e} {:>7}{}\n", finding.operation,
               finding.shape, shardplan::name_of(finding.dtype), finding.relative_error,
               finding.largest_error, finding.tolerance, finding.repeats ? "yes" : "no",
               finding.passed() ? "" : "  WRONG");
    if (!finding.passed()) ++failed;
  }
  fmt::print("{} of {} results are wrong\n", failed, lab.findings().size());
  return failed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("Checks the CUDA back end against the host's fp64, and times training steps.");
  app.require_subcommand(1);
  std::vector<std::string> families;
  CLI::App* check = app.add_subcommand("check", "Every operation beside the host in fp64");
  std::vector<std::string> names;
  for (const auto& [name, ignored] : kFamilies) names.push_back(name);
  check->add_option("families", families, "Only these")->check(CLI::IsMember(names));

  SpeedOptions options;
  bool pure = false;
  CLI::App* collectives = app.add_subcommand(
      "collectives", "NCCL's collectives over all GPUs of this host, a thread per GPU");
  CLI::App* speed = app.add_subcommand(
      "speed", "Tokens per second of training on one GPU, and the time of each kind of kernel");
  speed->add_option("model", options.model, "A catalogue name")->required();
  speed->add_option("--micro-batch", options.micro_batch)->check(CLI::PositiveNumber);
  speed->add_option("--sequence", options.sequence)->check(CLI::PositiveNumber);
  speed->add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  speed->add_option("--type", options.dtype, "fp32, bf16 or fp16")
      ->transform(CLI::CheckedTransformer(std::map<std::string, DType>{
          {"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}}));
  speed->add_flag("--pure", pure, "No fp32 master; moments in the type of the parameters");
  speed->add_option("--keep", options.keep, "What blocks keep for the backward pass")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Keep>{{"everything", Keep::everything},
                                                              {"products", Keep::products},
                                                              {"inputs", Keep::inputs}}));
  speed->add_option("--fp8", options.fp8, "Products of blocks in fp8, and how they are scaled")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Fp8Recipe>{{"none", Fp8Recipe::none},
                                           {"tensorwise", Fp8Recipe::tensorwise},
                                           {"rowwise", Fp8Recipe::rowwise}}));
  CLI::App* rates = app.add_subcommand(
      "rates", "Times what `shardplan calibrate` fits for the native engine, as a JSON record");
  CLI::App* products = app.add_subcommand(
      "products", "Times products of adapters and experts, host and GPU apart, as a JSON record");
  CLI11_PARSE(app, argc, argv);

  if (cuda_device_count() == 0) throw DeviceError("there is no GPU that CUDA can use");
  if (check->parsed()) return run_checks(families);
  if (collectives->parsed()) return check_collectives() == 0 ? 0 : 1;
  if (rates->parsed()) {
    fmt::print("{}", rates_record());
    return 0;
  }
  if (products->parsed()) {
    fmt::print("{}", product_rates_record());
    return 0;
  }
  options.master = !pure;
  fmt::print("{}", speed_report(options));
  return 0;
}

}  // namespace
}  // namespace shardplan::validator

int main(int argc, char** argv) {
  constexpr int kBadInput = 3;
  constexpr int kDeviceFailure = 5;
  try {
    return shardplan::validator::run(argc, argv);
  } catch (const shardplan::InputError& error) {
    fmt::print(stderr, "shardplan-kernel-check: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "shardplan-kernel-check: {}\n", error.what());
    return kDeviceFailure;
  }
}
