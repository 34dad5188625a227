// What NeMo RL's own configurations say of a step, for recipes that build on one and come without
// it (7ea279abf: examples/configs). Keys that change nothing that is estimated are left out.
#include <algorithm>
#include <array>

#include "import/kinds/nemo_rl_layers.h"

namespace shardplan::importing::nemo_rl {
namespace {

struct Program {
  std::string_view name, file;
};
constexpr std::array kPrograms{
    Program{"run_grpo.py", "grpo_math_1B.yaml"},
    Program{"run_grpo_single_controller.py", "grpo_math_1B_megatron_single_controller.yaml"},
    Program{"run_grpo_sliding_puzzle.py", "grpo_sliding_puzzle.yaml"},
    Program{"run_vlm_grpo.py", "vlm_grpo_3B.yaml"},
    Program{"run_ppo.py", "ppo_math_1B.yaml"},
    Program{"run_dpo.py", "dpo.yaml"},
    Program{"run_rm.py", "rm.yaml"},
    Program{"run_sft.py", "sft.yaml"},
    Program{"run_vlm_sft.py", "sft_vlm_3B.yaml"},
    Program{"run_grpo_nemo_gym.py",
            "../nemo_gym/grpo_workplace_assistant_nemotron_nano_v2_9b.yaml"},
    Program{"run_distillation_nemo_gym.py", "distillation_math.yaml"},
    Program{"run_distillation.py", "distillation_math.yaml"},
    Program{"run_xtoken_off_policy_distillation.py", "xtoken_off_policy_distillation.yaml"}};

/// Of all: one GPU, bf16, blocks under DTensor.
Json common() {
  return Json::parse(R"({
    "cluster": {"gpus_per_node": 1, "num_nodes": 1},
    "policy": {
      "precision": "bfloat16", "max_grad_norm": 1.0,
      "dtensor_cfg": {"enabled": true},
      "megatron_cfg": {
        "optimizer": {"use_distributed_optimizer": true},
        "distributed_data_parallel_config": {"overlap_grad_reduce": true,
                                             "overlap_param_gather": true}},
      "optimizer": {"name": "torch.optim.AdamW"}}})");
}

/// Pairs and supervised samples; rows are not joined.
Json of_samples(const char* algorithm, const char* model, int global, int micro, int length) {
  Json file = common();
  file[algorithm] = Json::object();
  Json& policy = file["policy"];
  policy["model_name"] = model;
  policy["train_global_batch_size"] = global;
  policy["train_micro_batch_size"] = micro;
  policy["max_total_sequence_length"] = length;
  policy["optimizer"]["kwargs"] = Json{{"foreach", false}, {"fused", false}};
  return file;
}

Json of_sft() {
  Json file = of_samples("sft", "meta-llama/Llama-3.2-1B", 32, 1, 1024);
  file["policy"]["dtensor_cfg"]["_v2"] = true;
  return file;
}

Json of_dpo() {
  Json file = of_samples("dpo", "meta-llama/Llama-3.2-1B-Instruct", 128, 2, 1024);
  file["policy"]["megatron_cfg"]["tensor_model_parallel_size"] = 2;
  file["policy"]["megatron_cfg"]["sequence_parallel"] = true;
  return file;
}

Json of_grpo() {
  Json file = common();
  file.merge_patch(Json::parse(R"({
    "grpo": {"num_prompts_per_step": 32, "num_generations_per_prompt": 16},
    "loss_fn": {"reference_policy_kl_penalty": 0.01},
    "policy": {
      "model_name": "Qwen/Qwen2.5-1.5B",
      "train_global_batch_size": 512, "train_micro_batch_size": 4,
      "logprob_batch_size": "${policy.train_micro_batch_size}",
      "max_total_sequence_length": 512,
      "dtensor_cfg": {"_v2": true},
      "sequence_packing": {
        "enabled": true,
        "train_mb_tokens": "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}",
        "logprob_mb_tokens": "${mul:${policy.max_total_sequence_length}, ${policy.logprob_batch_size}}"},
      "dynamic_batching": {
        "train_mb_tokens": "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}",
        "logprob_mb_tokens": "${mul:${policy.max_total_sequence_length}, ${policy.logprob_batch_size}}"},
      "generation": {
        "backend": "vllm",
        "max_new_tokens": "${policy.max_total_sequence_length}",
        "vllm_cfg": {"gpu_memory_utilization": 0.6,
                     "max_model_len": "${policy.max_total_sequence_length}"},
        "colocated": {"enabled": true}}}})"));
  return file;
}

}  // namespace

std::string_view usual_file(std::string_view program) {
  const auto own = std::ranges::find(kPrograms, program, &Program::name);
  return own == kPrograms.end() ? std::string_view() : own->file;
}

Json usual_values(std::string_view file) {
  if (file == "grpo_math_1B.yaml") return of_grpo();
  if (file == "sft.yaml") return of_sft();
  if (file == "dpo.yaml") return of_dpo();
  if (file == "rm.yaml") return of_samples("rm", "meta-llama/Llama-3.2-1B-Instruct", 128, 1, 8192);
  return nullptr;
}

}  // namespace shardplan::importing::nemo_rl
