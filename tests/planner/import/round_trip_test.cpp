// What is exported, imported again: the same estimate.
#include "import_testing.h"

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "export/export.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::importing {
namespace {

Job loaded(const Json& job) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  return load_job(job, "job.json", {.hardware = &hardware});
}

struct Trip {
  const char* name;
  const char* format;
  Json job;
};

void PrintTo(const Trip& trip, std::ostream* out) {
  *out << trip.name;
}

Json base(const char* cluster, Json more) {
  Json job{
      {"schema", "shardplan.job/1"},
      {"model", "qwen2.5-0.5b"},
      {"cluster", cluster},
      {"trainer", "hf_trainer"},
      {"workload", {{"micro_batch", 2}, {"sequence_length", 1024}, {"gradient_accumulation", 2}}},
      {"optimizer", {{"name", "adamw"}, {"implementation", "fused"}}},
      {"checkpointing", "full"}};
  job.merge_patch(more);
  return job;
}

std::vector<Trip> trips() {
  const Json ddp{{"framework", "ddp"}, {"precision", "bf16-autocast"}};
  const Json pure{{"framework", "ddp"}, {"precision", "bf16-pure"}};
  const Json fsdp1{{"framework", {{"name", "fsdp1"}, {"sharding_strategy", "shard_grad_op"}}},
                   {"precision", "bf16-autocast"}};
  const Json fsdp2{{"framework", {{"name", "fsdp2"}, {"reshard_after_forward", false}}},
                   {"precision", "bf16-autocast"}};
  const Json zero{{"framework", {{"name", "deepspeed"}, {"zero_stage", 3}}},
                  {"precision", "bf16-master"}};
  const Json qlora{{"framework", "single"},
                   {"precision", "bf16-pure"},
                   {"optimizer", {{"name", "paged_adamw_8bit"}, {"implementation", nullptr}}},
                   {"workload",
                    {{"method", "lora"},
                     {"lora",
                      {{"rank", 8},
                       {"targets", {"all-linear"}},
                       {"quantization", "nf4_double"},
                       {"prepare_kbit", false}}}}}};
  const Json liger{{"framework", "ddp"}, {"precision", "bf16-pure"}, {"kernels", "liger"}};
  const Json images{{"framework", "ddp"},
                    {"precision", "bf16-pure"},
                    {"model", "qwen2-vl-2b"},
                    {"workload", {{"sequence_length", 2048}}}};
  Json frozen = images;
  frozen["workload"]["frozen"] = "tower";
  // Shards in the type of the weights, embeddings and head in the root's unit.
  const Json axolotl{{"framework", {{"name", "fsdp2"}, {"reshard_after_forward", false}}},
                     {"precision", "bf16-pure"},
                     {"model", "llama-3.2-3b"},
                     {"trainer", "axolotl"}};
  const Json adapters{
      {"framework", "fsdp2"},
      {"precision", "bf16-pure"},
      {"workload", {{"method", "lora"}, {"lora", {{"rank", 8}, {"targets", {"all-linear"}}}}}}};
  Json tiles = axolotl;
  tiles["mlp_tiles"] = 4;
  Json fused_tiles = tiles;
  fused_tiles["kernels"] = Json{"rms_norm", "swiglu"};
  Json trl_adapters = adapters, axolotl_adapters = adapters;
  trl_adapters["trainer"] = "trl";
  axolotl_adapters["trainer"] = "axolotl";
  const Json usual_fsdp2{{"framework", "fsdp2"}, {"precision", "bf16-autocast"}};
  Json int8 = qlora;
  int8["workload"]["lora"]["quantization"] = "int8";
  int8["workload"]["lora"].erase("prepare_kbit");
  const Json nemo{{"framework",
                   {{"name", "fsdp2"},
                    {"reduce_dtype", "fp32"},
                    {"sync_each_batch", false},
                    {"reshard_after_forward", false}}},
                  {"trainer", "loop"},
                  {"precision", "bf16-pure"},
                  {"parallel", {{"tensor", 2}}}};
  Json nemo_adapters = nemo;
  nemo_adapters.erase("parallel");
  nemo_adapters["workload"] = adapters["workload"];
  nemo_adapters["workload"]["packing"] = true;
  Json nemo_images = nemo;
  nemo_images["model"] = "gemma-3-4b-pt";
  nemo_images["workload"] = {{"frozen", "tower"}};
  Json nemo_root = nemo_images;
  nemo_root["framework"]["frozen_tower"] = "root";
  const Json verl{{"framework", {{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}},
                  {"trainer", "verl"},
                  {"sdpa_kernel", "flash_attn"},  // all that its supervised trainer has
                  {"precision", "bf16-autocast"},
                  {"parallel", {{"sequence", 2}}},
                  {"optimizer", {{"implementation", "foreach"}}}};
  Json verl1 = verl;
  verl1["framework"] = {{"name", "fsdp1"}, {"reduce_dtype", "fp32"}};
  verl1["kernels"] = "liger";
  verl1.erase("parallel");
  const Json titan{{"framework", {{"name", "fsdp2"}, {"reduce_dtype", "fp32"}}},
                   {"trainer", "torchtitan"},
                   {"precision", "bf16-autocast"},
                   {"checkpointing", {{"policy", "selective_op"}, {"every", 2}}}};
  Json staged = titan;
  staged["model"] = "llama-2-7b";
  staged["framework"]["reshard_after_forward"] = false;
  staged["framework"]["context_rotation"] = "alltoall";
  staged["workload"]["gradient_accumulation"] = 4;
  staged["parallel"] = {{"pipeline", 2}, {"virtual_pipeline", 2}, {"context", 2}, {"tensor", 2}};
  staged["parallel"]["sequence_parallel"] = true;
  const Json megatron{{"framework", "megatron"},
                      {"trainer", nullptr},
                      {"model", "llama-3.2-1b"},
                      {"precision", "bf16-master"},
                      {"parallel", {{"tensor", 2}}}};
  Json predicts = megatron, muon = megatron, sharded = megatron;
  predicts["framework"] = {{"name", "megatron"}, {"mtp_num_layers", 1}};
  predicts["parallel"] = {{"pipeline", 2}, {"stage_layers", {9, 7}}};
  muon["optimizer"] = {{"name", "muon"}, {"implementation", nullptr}};
  sharded["framework"] = {
      {"name", "megatron"}, {"shard_gradients", true}, {"shard_parameters", true}};
  Json sent = megatron;
  sent["checkpointing"] = "none";
  sent["framework"] = {{"name", "megatron"},
                       {"offload_modules", {"core_attn", "attn_proj"}},
                       {"min_offloaded_tensor_size", 4096}};
  Json experts = nemo;
  experts["model"] = "qwen3-30b-a3b";
  experts["framework"]["expert_dispatch"] = "allgather";
  experts["parallel"] = {{"expert", 4}};
  Json graphs = pure, offloaded = qlora;
  graphs["framework"] = "single";
  graphs["compile"] = {{"mode", "reduce-overhead"}};
  graphs["workload"]["gradient_accumulation"] = 1;
  offloaded["trainer"] = "axolotl";
  offloaded["checkpointing"] = "none";
  offloaded["activation_offloading"] = "streams";
  Json pure_shards = fsdp1;
  pure_shards["precision"] = "bf16-pure";
  Json offloaded_zero = zero, oumi_qlora = qlora, oumi_int8 = int8;
  offloaded_zero["framework"]["offload_optimizer"] = "cpu";
  oumi_qlora["workload"]["lora"]["prepare_kbit"] = true;  // oumi always does
  oumi_int8["workload"]["lora"]["prepare_kbit"] = true;
  const Json loop{{"trainer", "loop"},
                  {"precision", "bf16-autocast"},
                  {"optimizer", {{"implementation", "foreach"}}}};
  Json foundry = loop;
  foundry["framework"] = {{"name", "fsdp1"},
                          {"use_orig_params", true},
                          {"backward_prefetch", "post"},
                          {"reduce_dtype", "fp32"}};
  foundry["optimizer"]["implementation"] = "for-loop";
  foundry["workload"] = {{"packing", true}};
  Json mpt = foundry;
  mpt["model"] = {{"model_type", "gpt2"},
                  {"n_embd", 1024},
                  {"n_head", 16},
                  {"n_layer", 4},
                  {"n_inner", 4096},
                  {"vocab_size", 50368},
                  {"n_positions", 1024},
                  {"resid_pdrop", 0.0},
                  {"embd_pdrop", 0.0},
                  {"attn_pdrop", 0.0},
                  {"activation_function", "gelu"}};
  mpt["sdpa_kernel"] = "flash_attn";
  Json foundry_ddp = loop, foundry_adapters = foundry;
  foundry_ddp["framework"] = "ddp";
  foundry_ddp["checkpointing"] = "none";
  foundry_adapters["workload"] = adapters["workload"];
  Json olmo = loop, olmo_ddp = loop;
  olmo["model"] = "olmo-2-1124-7b";
  olmo["framework"] = {{"name", "fsdp1"}, {"use_orig_params", true}, {"reduce_dtype", "fp32"}};
  olmo["checkpointing"] = {{"policy", "blocks"}, {"every", 4}};
  olmo_ddp["model"] = "llama-3.2-1b";
  olmo_ddp["framework"] = "ddp";
  return {{"HfGraphs", "training_arguments", base("1xH100", graphs)},
          {"AxolotlOffloadedAdapters", "axolotl", base("1xH100", offloaded)},
          {"HfDdp", "training_arguments", base("4xH100", ddp)},
          {"HfPure", "training_arguments", base("4xH100", pure)},
          {"HfFsdp1", "training_arguments", base("4xH100", fsdp1)},
          {"HfFsdp2", "training_arguments", base("4xH100", fsdp2)},
          {"HfZero", "training_arguments", base("4xH100", zero)},
          {"HfLiger", "training_arguments", base("4xH100", liger)},
          {"AxolotlPure", "axolotl", base("4xH100", pure)},
          {"AxolotlFsdp1", "axolotl", base("4xH100", fsdp1)},
          {"AxolotlFsdp2", "axolotl", base("4xH100", axolotl)},
          {"AxolotlFsdp2Adapters", "axolotl", base("4xH100", axolotl_adapters)},
          {"AxolotlTiles", "axolotl", base("4xH100", tiles)},
          {"AxolotlFusedTiles", "axolotl", base("4xH100", fused_tiles)},
          {"AxolotlZero", "axolotl", base("4xH100", zero)},
          {"AxolotlQlora", "axolotl", base("1xH100", qlora)},
          {"AxolotlLiger", "axolotl", base("4xH100", liger)},
          {"LlamaFactoryDdp", "llamafactory", base("4xH100", ddp)},
          {"LlamaFactoryImages", "llamafactory", base("4xH100", frozen)},
          {"HfImages", "training_arguments", base("4xH100", images)},
          {"LlamaFactoryPure", "llamafactory", base("4xH100", pure)},
          {"LlamaFactoryZero", "llamafactory", base("4xH100", zero)},
          {"LlamaFactoryQlora", "llamafactory", base("1xH100", qlora)},
          {"TrlFsdp2Adapters", "training_arguments", base("4xH100", trl_adapters)},
          {"MsSwiftDdp", "ms_swift", base("4xH100", ddp)},
          {"MsSwiftPure", "ms_swift", base("4xH100", pure)},
          {"MsSwiftFsdp2", "ms_swift", base("4xH100", usual_fsdp2)},
          {"MsSwiftZero", "ms_swift", base("4xH100", zero)},
          {"MsSwiftInt8", "ms_swift", base("1xH100", int8)},
          {"MsSwiftLiger", "ms_swift", base("4xH100", liger)},
          {"MsSwiftImages", "ms_swift", base("4xH100", frozen)},
          {"Nemo", "nemo", base("4xH100", nemo)},
          {"NemoAdapters", "nemo", base("4xH100", nemo_adapters)},
          {"NemoImages", "nemo", base("4xH100", nemo_images)},
          {"NemoImagesInRoot", "nemo", base("4xH100", nemo_root)},
          {"VerlFsdp2", "verl", base("4xH100", verl)},
          {"VerlFsdp1Liger", "verl", base("4xH100", verl1)},
          {"OumiDdp", "oumi", base("4xH100", ddp)},
          {"OumiPure", "oumi", base("4xH100", pure)},
          {"OumiFsdp1Pure", "oumi", base("4xH100", pure_shards)},
          {"OumiFsdp1", "oumi", base("4xH100", fsdp1)},
          {"OumiZero", "oumi", base("4xH100", zero)},
          {"OumiZeroOffloaded", "oumi", base("4xH100", offloaded_zero)},
          {"OumiQlora", "oumi", base("1xH100", oumi_qlora)},
          {"OumiInt8", "oumi", base("1xH100", oumi_int8)},
          {"OumiLiger", "oumi", base("4xH100", liger)},
          {"LlmFoundry", "llm_foundry", base("4xH100", foundry)},
          {"LlmFoundryMpt", "llm_foundry", base("4xH100", mpt)},
          {"LlmFoundryDdp", "llm_foundry", base("4xH100", foundry_ddp)},
          {"LlmFoundryAdapters", "llm_foundry", base("4xH100", foundry_adapters)},
          {"Olmo", "olmo", base("4xH100", olmo)},
          {"OlmoLlamaDdp", "olmo", base("4xH100", olmo_ddp)},
          {"Torchtitan", "torchtitan", base("4xH100", titan)},
          {"TorchtitanStages", "torchtitan", base("8xH100", staged)},
          {"NemoExperts", "nemo", base("4xH100", experts)},
          {"Megatron", "megatron", base("4xH100", megatron)},
          {"MegatronFurtherTokens", "megatron", base("4xH100", predicts)},
          {"MegatronMuon", "megatron", base("4xH100", muon)},
          {"MegatronSentModules", "megatron", base("4xH100", sent)},
          {"MegatronSharded", "megatron", base("4xH100", sharded)}};
}

/// With the package flash-attn 2, which Mistral's windows need no masks for.
std::vector<Trip> trips_with_flash_attn() {
  std::vector<Trip> found;
  for (Trip trip : trips()) {
    const std::string_view name = trip.name;
    for (const char* one : {"HfDdp", "AxolotlPure", "LlamaFactoryDdp", "MsSwiftDdp", "Nemo",
                            "OumiDdp", "LlmFoundry", "Olmo", "Megatron", "VerlFsdp2"})
      if (name == one) {
        trip.job["sdpa_kernel"] = "flash_attn";
        found.push_back(std::move(trip));
        break;
      }
  }
  return found;
}

class RoundTrip : public testing::TestWithParam<Trip> {};

TEST_P(RoundTrip, GivesTheSameEstimate) {
  const Calibration calibration = load_calibration();
  const Json& asked = GetParam().job;
  const Job before = loaded(asked);
  const Estimate first = estimate(before.model, before.plan, calibration);
  const ExportedFile file = export_as(GetParam().format, asked, before, first);
  const Imported imported = import_text(file.text, {{"cluster", asked.at("cluster")}}, file.name);
  const Job after = loaded(imported.job);
  const Estimate second = estimate(after.model, after.plan, calibration);
  EXPECT_EQ(first.device.point, second.device.point) << file.text << imported.job.dump(2);
  EXPECT_EQ(first.allocated.point, second.allocated.point);
  EXPECT_DOUBLE_EQ(first.time.step_seconds, second.time.step_seconds);
  EXPECT_EQ(before.plan.calls_flash_attn(), after.plan.calls_flash_attn()) << file.text;
}

INSTANTIATE_TEST_SUITE_P(FlashAttn, RoundTrip, testing::ValuesIn(trips_with_flash_attn()),
                         [](const auto& trip) { return std::string(trip.param.name); });
INSTANTIATE_TEST_SUITE_P(Exports, RoundTrip, testing::ValuesIn(trips()),
                         [](const auto& trip) { return std::string(trip.param.name); });

struct Models {
  const char* name;
  Json workload, more;
};

/// Preference training and GRPO, as TRL's arguments.
std::vector<Models> models() {
  const Json sharded{{"framework", "fsdp2"}, {"precision", "bf16-autocast"}};
  const Json none = Json::object();
  const Json frozen{{"reference", {{"precision", "bf16-pure"}}}};
  const Json grpo{{"algorithm", "grpo"}, {"prompt_length", 512}, {"new_tokens", 256}};
  Json alone = grpo, engine = grpo;
  alone["reference"] = "none";
  engine["rollout"] = {{"engine", "vllm"},
                       {"placement", "colocated"},
                       {"gpu_memory_utilization", 0.3},
                       {"max_num_batched_tokens", 4096},
                       {"completions", 4}};
  return {{"Dpo", {{"algorithm", "dpo"}}, none},
          {"DpoSharded", {{"algorithm", "dpo"}, {"models", frozen}}, sharded},
          {"DpoPrecomputed", {{"algorithm", "dpo"}, {"reference", "precomputed"}}, none},
          {"Orpo", {{"algorithm", "orpo"}}, none},
          {"Kto", {{"algorithm", "kto"}}, none},
          {"Cpo", {{"algorithm", "cpo"}}, none},
          {"Reward", {{"algorithm", "reward"}}, none},
          {"Grpo", grpo, none},
          {"GrpoAlone", alone, none},
          {"GrpoEngine", engine, none}};
}

TEST(RoundTripOfModels, GivesTheSameEstimate) {
  const Calibration calibration = load_calibration();
  for (const Models& m : models()) {
    Json asked =
        base("4xH100", {{"trainer", "trl"}, {"framework", "ddp"}, {"precision", "bf16-pure"}});
    asked["workload"] = {{"kind", "rlhf"}, {"micro_batch", 2}, {"gradient_accumulation", 2}};
    if (!m.workload.contains("prompt_length")) asked["workload"]["sequence_length"] = 1024;
    asked["workload"].update(m.workload);
    asked.update(m.more);
    const Job before = loaded(asked);
    const Estimate first = estimate_rlhf(*before.rlhf, calibration);
    const ExportedFile file = export_as("training_arguments", asked, before, first);
    const Imported imported = import_text(file.text, {{"cluster", "4xH100"}}, file.name);
    const Estimate second = estimate_rlhf(*loaded(imported.job).rlhf, calibration);
    EXPECT_EQ(first.device.point, second.device.point)
        << m.name << file.text << imported.job.dump(2);
    EXPECT_DOUBLE_EQ(first.time.step_seconds, second.time.step_seconds) << m.name;
  }
}

/// accelerate's file says the framework, and the rest comes beside it.
TEST(RoundTripOfTwo, AccelerateAndArguments) {
  const Calibration calibration = load_calibration();
  for (const Json& framework :
       {Json{{"name", "fsdp1"}}, Json{{"name", "fsdp2"}}, Json{{"name", "ddp"}}}) {
    const Json asked = base("4xH100", {{"framework", framework}, {"precision", "bf16-autocast"}});
    const Job before = loaded(asked);
    const Estimate first = estimate(before.model, before.plan, calibration);
    std::vector<Document> documents =
        parse_documents(export_as("accelerate", asked, before, first).text, "accelerate.yaml");
    const std::string arguments =
        "model_name_or_path: qwen2.5-0.5b\nper_device_train_batch_size: 2\nbf16: true\n"
        "model_max_length: 1024\ngradient_checkpointing: true\ngradient_accumulation_steps: 2\n";
    for (Document& more : parse_documents(arguments, "args.yaml"))
      documents.push_back(std::move(more));
    const Imported imported = import_documents(documents, "", {{"cluster", "4xH100"}});
    const Job after = loaded(imported.job);
    const Estimate second = estimate(after.model, after.plan, calibration);
    EXPECT_EQ(first.device.point, second.device.point) << framework << imported.job.dump(2);
  }
}

}  // namespace
}  // namespace shardplan::importing
