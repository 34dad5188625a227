#include "load/rates.h"

#include <array>
#include <utility>

#include "json/reader.h"
#include "load/measured_host.h"
#include "lowering/optimizer_kernels.h"

namespace shardplan {
namespace {

using Name = std::pair<std::string_view, KernelKind>;

/// Operations of the measuring program by the kind of kernel they start.
constexpr std::array<Name, 27> kForms{{
    {"add", KernelKind::elementwise},
    {"mul", KernelKind::elementwise},
    {"scale", KernelKind::elementwise},
    {"silu", KernelKind::elementwise},
    {"gelu", KernelKind::elementwise},
    {"gelu_tanh", KernelKind::elementwise},
    {"tanh", KernelKind::elementwise},
    {"power", KernelKind::elementwise},
    {"square", KernelKind::elementwise},
    {"copy", KernelKind::elementwise},
    {"silu_backward", KernelKind::elementwise},
    {"gelu_backward", KernelKind::elementwise},
    {"dropout", KernelKind::elementwise},
    {"mul_row", KernelKind::strided},
    {"transpose_copy", KernelKind::strided},
    {"cat_halves", KernelKind::concatenate},
    {"mean_row", KernelKind::row_reduction},
    {"sum_rows", KernelKind::column_sum},
    {"layer_norm", KernelKind::layer_norm},
    {"layer_norm_backward", KernelKind::layer_norm_backward},
    {"softmax", KernelKind::softmax},
    {"log_softmax", KernelKind::softmax},
    {"softmax_backward", KernelKind::softmax_backward},
    {"log_softmax_backward", KernelKind::log_softmax_backward},
    {"embedding", KernelKind::embedding},
    {"triton_pointwise", KernelKind::triton_pointwise},
    {"triton_reduction", KernelKind::triton_reduction},
}};

DType read_type(ObjectReader& row) {
  const std::string name =
      row.choice("dtype", {"float32", "tf32", "bfloat16", "float16"}).value_or("float32");
  return name == "float32"   ? DType::f32
         : name == "tf32"    ? DType::tf32
         : name == "float16" ? DType::f16
                             : DType::bf16;
}

/// False for operations that no kernel kind stands for.
bool read_memory(ObjectReader& row, KernelRow& out) {
  Kernel& k = out.kernel;
  k.bytes = row.number("bytes", 1).value_or(1);
  k.elements = row.number("elements", 1).value_or(1);
  const auto kernels = static_cast<std::int32_t>(row.integer("kernels", 1).value_or(1));
  if (out.form == "embedding_backward") {
    k.kind = KernelKind::embedding_backward;
    out.graphed = false;
    return true;
  }
  if (out.form == "adamw_fused" || out.form == "clip") {
    k.kind = KernelKind::multi_tensor;
    k.calls = kernels;
    k.bytes /= kernels;
    k.elements *= (out.form == "clip" ? 2 * kClippingWork : 1) / kernels;
    out.graphed = false;
    return true;
  }
  if (out.form == "cast") {  // widening is not vectorised
    k.kind = k.type == DType::f32 ? KernelKind::elementwise : KernelKind::strided;
    return true;
  }
  for (const auto& [form, kind] : kForms)
    if (form == out.form) {
      k.kind = kind;
      return true;
    }
  return false;
}

void read_product(ObjectReader& row, KernelRow& out) {
  Kernel& k = out.kernel;
  k.sums_rows = out.form == "weight_gradient";
  k.kind = KernelKind::product;
  k.m = row.integer("m", 1).value_or(1);
  k.n = row.integer("n", 1).value_or(1);
  k.k = row.integer("k", 1).value_or(1);
  k.batch = row.integer("batch", 1).value_or(1);
}

void read_attention(ObjectReader& row, KernelRow& out) {
  Kernel& k = out.kernel;
  const bool backward = out.form == "backward";
  k.kind = backward ? KernelKind::attention_backward : KernelKind::attention;
  // Else backward passes are timed with their launches.
  out.graphed = !backward || row.boolean("queued").value_or(false);
  k.m = k.n = row.integer("sequence", 1).value_or(1);
  k.k = row.integer("head_width", 1).value_or(1);
  k.batch = row.integer("batch", 1).value_or(1) * row.integer("heads", 1).value_or(1);
  k.key_batch = row.integer("batch", 1).value_or(1) * row.integer("key_heads", 1).value_or(1);
  k.causal = row.boolean("causal").value_or(false);
  k.masked = row.boolean("masked").value_or(false);
  k.by_rows = row.boolean("by_rows").value_or(false);
}

void read_rate(const Json& json, const std::string& path, const std::string& file,
               RateRecord& record) {
  ObjectReader row(json, file, path);
  const std::string kind =
      row.choice("kind", {"product", "attention", "memory", "collective", "copy"}).value_or("");
  const std::string form = row.text("form").value_or("");
  const double seconds = row.number("seconds", 0).value_or(0);
  if (kind == "collective" || kind == "copy") {
    record.links.push_back(
        {form, row.integer("ranks", 1).value_or(1), row.integer("bytes", 1).value_or(1), seconds});
    return;
  }
  KernelRow out;
  out.form = form;
  out.seconds = seconds;
  out.kernel.type = read_type(row);
  if (kind == "product") read_product(row, out);
  if (kind == "attention") read_attention(row, out);
  if (kind == "memory" && !read_memory(row, out)) return;
  record.kernels.push_back(std::move(out));
}

/// By what cuBLAS calls its kernels; fused attention is another's.
bool is_product(const std::string& kernel) {
  if (kernel.find("fmha") != std::string::npos) return false;
  for (const auto* part : {"nvjet", "gemm", "xmma", "cutlass", "splitK"})
    if (kernel.find(part) != std::string::npos) return true;
  return false;
}

void read_step(const Json& json, const std::string& path, const std::string& file,
               const JobContext& context, RateRecord& record) {
  ObjectReader row(json, file, path);
  HostRow out;
  out.name = row.text("name").value_or("");
  const Json* job = row.find("job");
  if (job == nullptr) row.fail("job", "a step without a job", "a job (docs/reference/job.md)");
  out.job = load_job(*job, file, context);
  out.step_seconds = row.number("step_seconds", 0).value_or(0);
  out.job.plan.launch_blocking = record.launch_blocking;
  row.object("least_host_seconds");  // steps are predicted as they usually are
  auto host = row.object("host_seconds");
  if (!host && out.step_seconds <= 0)
    row.missing("host_seconds", "forward, backward and step in seconds, or step_seconds");
  if (host)
    out.seconds = {host->number("forward", 0).value_or(0), host->number("backward", 0).value_or(0),
                   host->number("step", 0).value_or(0)};
  if (const Json* kernels = row.array("kernels"))
    for (const Json& kernel : *kernels)
      if (is_product(kernel.value("name", ""))) out.product_seconds += kernel.value("seconds", 0.0);
  record.hosts.push_back(std::move(out));
}

void read_environment(ObjectReader& environment, RateRecord& record) {
  record.gpu = environment.text("gpu").value_or("");
  record.launch_blocking = environment.boolean("launch_blocking").value_or(false);
  if (auto host = environment.object("machine")) record.host = read_measured_host(*host);
}

}  // namespace

RateRecord load_rate_record(const std::string& path, const JobContext& context) {
  const Json json = read_json_file(path);
  ObjectReader o(json, path);
  o.choice("schema", {"shardplan.rates/1", "shardplan.step_times/1"});
  RateRecord record;
  record.file = path;
  if (auto environment = o.object("environment")) read_environment(*environment, record);
  if (const Json* rates = o.array("rates"))
    for (std::size_t i = 0; i < rates->size(); ++i)
      read_rate((*rates)[i], "rates[" + std::to_string(i) + "]", path, record);
  if (const Json* steps = o.array("steps"))
    for (std::size_t i = 0; i < steps->size(); ++i)
      read_step((*steps)[i], "steps[" + std::to_string(i) + "]", path, context, record);
  if (record.kernels.empty() && record.links.empty() && record.hosts.empty())
    o.fail("rates", "no measurement in this record", "rates or steps (docs/explanation/time.md)");
  return record;
}

}  // namespace shardplan
