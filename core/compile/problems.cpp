#include "compile/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "frameworks/registry.h"
#include "model/layers/convolution.h"
#include "program/compiled/breaks.h"
#include "program/compiled/cuts.h"
#include "program/tape.h"

namespace shardplan {
namespace {

using Problem = std::optional<DivisionProblem>;

DivisionProblem problem(std::string message, std::string expected) {
  return {"compile", std::move(message), std::move(expected)};
}

Problem framework_problem(const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  const std::optional<CompileScope> most = framework.compiles;
  if (!most)
    return problem(
        fmt::format("compiled steps under {} are not estimated", std::string_view(framework.label)),
        "false, or framework single, ddp, fsdp2 or deepspeed");
  if (plan.framework.deepspeed.deepcompile)
    return problem("DeepCompile's gathers inside of the graph are not estimated",
                   "false, or a ds_config without compile.deepcompile");
  const Parallel& p = plan.parallel;
  if (p.tensor > 1 || p.expert > 1 || (framework.has_zero && p.sequence > 1))
    return problem("exchanges inside of compiled layers are not estimated",
                   "false, or no tensor, expert and sequence parallelism");
  if (p.pipeline > 1)
    return problem("compiled stages of a pipeline are not estimated", "false, or no pipeline");
  return std::nullopt;
}

/// CUDA graphs, after the source of PyTorch 2.11 (torch/_inductor/cudagraph_trees.py).
Problem graphs_problem(const Plan& plan) {
  if (!plan.records_graphs()) return std::nullopt;
  if (!plan.compiles_whole())
    return problem(
        "CUDA graphs are estimated for a model that is compiled whole: of blocks each has its own",
        "the default mode, or scope model");
  const FrameworkTraits& framework = traits_of(plan);
  if (!framework.records_graphs(plan))
    return problem(
        fmt::format("CUDA graphs are not estimated where {} keeps gradients in buffers of its own",
                    std::string_view(framework.label)),
        R"({"mode": "default"}, or framework single or ddp, without gradient_as_bucket_view)");
  if (plan.workload.gradient_accumulation > 1)
    return problem(
        "the step stops: gradients of the first micro-batch lie in the graphs' pool, and the next "
        "micro-batch writes over them (\"accessing tensor output of CUDAGraphs that has been "
        "overwritten by a subsequent run\")",
        R"({"mode": "default"}, or gradient_accumulation 1)");
  return std::nullopt;
}

template <typename Is>
bool has_op(const Model& model, Is&& is) {
  return std::any_of(model.segments.begin(), model.segments.end(), [&](const Segment& segment) {
    return std::any_of(segment.graph.ops().begin(), segment.graph.ops().end(), is);
  });
}

/// Blocks that are compiled one by one have one graph each, in which a policy tags operations.
Problem policy_problem(const Plan& plan) {
  const bool tags = plan.checkpointing == Checkpointing::selective ||
                    plan.checkpointing == Checkpointing::selective_op;
  if (plan.checkpoint_share.offload)
    return problem("what save_on_cpu moves to the host around compiled blocks is not estimated",
                   "false, or checkpointing without offload");
  if (plan.keeps_some_blocks() && plan.compiles_whole() && traits_of(plan).graph_bytes(plan) > 0)
    return problem(
        "some blocks checkpointed in a compiled model whose graph Dynamo cuts at buckets "
        "are not estimated",
        R"({"scope": "block"}, or checkpointing full or none)");
  if (tags && plan.compiles_whole())
    return problem(
        "policies of checkpointing in a model that is compiled in one piece are not "
        "estimated",
        R"({"scope": "block"}, or checkpointing full or none)");
  if (tags && plan.precision.linear != LinearRecipe::computed)
    return problem(
        "policies of checkpointing over products in 8 bits are not estimated in a "
        "compiled block: what they tag are the subclass's own operations",
        "checkpointing full or none, or linears in the type of the rest");
  return std::nullopt;
}

/// A value that a norm of Liger's reads is handed on to a graph behind the next bucket.
bool hands_on_normed(const Graph& graph, const std::vector<std::int32_t>& parts) {
  const std::vector<Op>& ops = graph.ops();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool norm = ops[i].kind == OpKind::rms_norm || ops[i].kind == OpKind::layer_norm;
    if (ops[i].fused == nullptr || !norm) continue;
    const ValueId x = ops[i].in[0];
    bool made = false, handed = false;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const bool reads = std::find(ops[j].in.begin(), ops[j].in.end(), x) != ops[j].in.end();
      made = made || (ops[j].out == x && parts[j] == parts[i]);
      handed = handed || (reads && parts[j] > parts[i]);
    }
    if (made && handed) return true;
  }
  return false;
}

/// Under DDP. PyTorch 2.11 takes what a norm of Liger's reads for written to (trace_kernels.cpp);
/// AOTAutograd then returns it in the flat shape that the kernel has, where it is a graph's result.
/// Seen where DDPOptimizer cut layers of tensors without data.
Problem cut_layers_problem(const Model& model, const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  const std::int64_t graph_bytes = framework.graph_bytes(plan);
  if (graph_bytes == 0 || plan.checkpointing == Checkpointing::full) return std::nullopt;
  const Regime regime = framework.regime(plan);
  const bool stops =
      std::any_of(model.segments.begin(), model.segments.end(), [&](const Segment& segment) {
        const std::vector<std::int32_t> parts = compiled::parts_at_breaks(model, segment);
        return hands_on_normed(
            segment.graph,
            compiled::cut_between_breaks(model, regime, segment.graph, parts, graph_bytes));
      });
  if (!stops) return std::nullopt;
  return problem(
      "the step stops: DDP's buckets cut layers of Liger-Kernel 0.8.5 between a norm and the sum "
      "that reads its input too, which PyTorch 2.11 then hands on in another shape ("
      "\"Attempting to broadcast a dimension\", seen while tracing, on no run)",
      "false, kernels torch, checkpointing full, or framework fsdp2 with {\"scope\": \"block\"}");
}

/// Liger's kernels: what Liger itself puts into a model, and what PyTorch 2.11 can trace of it.
Problem traced_kernels_problem(const Model& model, const Plan& plan) {
  const auto has = [&](OpKind kind) {
    return has_op(model, [=](const Op& op) { return op.fused != nullptr && op.kind == kind; });
  };
  if (!has_op(model, [](const Op& op) { return op.fused != nullptr; })) return std::nullopt;
  if (!has(OpKind::rotary) || !has(OpKind::fused_linear_loss))
    return problem(
        "of Liger's kernels in a compiled model only those that it puts there itself are "
        "estimated, rotation and fused loss among them",
        "kernels liger, for a model type that has both, or false");
  const bool narrow = size_of(plan.precision.params) < 4;
  const bool trains = has_op(model, [&](const Op& op) {
    return op.kind == OpKind::fused_linear_loss &&
           model.parameters[static_cast<std::size_t>(op.weight)].trainable;
  });
  if (!narrow && trains)
    return problem(
        "the step stops: Liger-Kernel 0.8.5 adds the head's gradient up in fp32 with "
        "torch.addmm(out_dtype=), which PyTorch 2.11 cannot trace (its rule for tensors without "
        "data, torch/_decomp/decompositions.py, takes the type for a factor)",
        "parameters in 16 bits, compile false, or kernels without fused_linear_cross_entropy");
  if (plan.records_graphs())
    return problem("CUDA graphs of the pieces between Liger's kernels are not estimated",
                   R"({"mode": "default"}, or kernels torch)");
  return cut_layers_problem(model, plan);
}

/// Dynamo leaves LLM.int8() out; what is between is estimated where nothing else cuts it.
Problem int8_problem(const Model& model, const Plan& plan) {
  if (!plan.compiles_whole() || traits_of(plan).data_parallel || plan.records_graphs())
    return problem(
        "LLM.int8() breaks the graph at every linear; the pieces are estimated in a model that is "
        "compiled in one piece, in one process and without CUDA graphs",
        R"(false, or framework single and {"scope": "model"})");
  if (has_op(model, [](const Op& op) { return op.fused != nullptr; }))
    return problem("pieces between LLM.int8() and fused kernels are not estimated",
                   "false, kernels torch, or a base in four or 16 bits");
  return std::nullopt;
}

/// bitsandbytes' operators for four bits have rules for tensors without data. A bias of another
/// type than the product gets a new tensor in the first step (nn/modules.py, Linear4bit), which
/// Dynamo cannot trace.
Problem stored_problem(const Model& model, const Plan& plan) {
  if (!plan.workload.lora || plan.workload.lora->base == Quantization::none) return std::nullopt;
  if (plan.workload.lora->base == Quantization::int8) return int8_problem(model, plan);
  if (!plan.compiles_whole() || traits_of(plan).data_parallel)
    return problem(
        "weights in four bits are estimated in a model that is compiled in one piece, in one "
        "process",
        R"(false, or framework single and {"scope": "model"})");
  const Regime regime = traits_of(plan).regime(plan);
  const bool converts = regime.params != regime.widened();
  if (converts && has_op(model, [&](const Op& op) {
        return op.kind == OpKind::linear && op.bias != kNone &&
               model.parameters[static_cast<std::size_t>(op.weight)].widened();
      }))
    return problem(
        "bitsandbytes 0.50 converts fp32 biases of its linears in the first step, which breaks "
        "the graph in every layer and leaves pieces of layers, which are not estimated",
        "false, prepare_kbit false, or a model whose linears have no bias");
  return std::nullopt;
}

/// Conv1D's, which GPT-2 has.
bool is_stored_turned(const Model& model, const Graph& graph, const Op& op) {
  if (op.kind != OpKind::linear || op.weight == kNone) return false;
  const auto& shape = model.parameters[static_cast<std::size_t>(op.weight)].shape;
  const std::int64_t out = graph.value(op.out).extent.per;
  return shape.front() != out && shape.back() == out;
}

/// DoRA of peft 0.21 is traced as it is where nothing else is around it.
Problem magnitudes_problem(const Model& model, const Plan& plan) {
  if (!plan.workload.lora || !plan.workload.lora->magnitudes) return std::nullopt;
  if (plan.checkpointing != Checkpointing::none)
    return problem(
        "DoRA in checkpointed blocks of a compiled model is not estimated: peft empties a "
        "dictionary in each forward pass (tuners/lora/dora.py, _cache_clear), at which Dynamo "
        "leaves a checkpoint out (side effects), and the layers are graphs of their own",
        "false, checkpointing none, or no dora");
  if (!plan.compiles_whole() || traits_of(plan).data_parallel || plan.records_graphs() ||
      plan.workload.lora->base != Quantization::none || plan.workload.lora->dropout > 0)
    return problem(
        "DoRA is estimated in a model that is compiled in one piece, in one process and without "
        "CUDA graphs, over weights in 16 or 32 bits and without dropout",
        "false, or no dora");
  const Regime regime = traits_of(plan).regime(plan);
  const bool turns = std::ranges::any_of(model.segments, [&](const Segment& segment) {
    return std::ranges::any_of(segment.graph.ops(), [&](const Op& op) {
      return is_stored_turned(model, segment.graph, op);
    });
  });
  if (turns && regime.params == regime.adapters)
    return problem(
        "peft makes a parameter of each weight that is stored turned (utils/other.py, transpose), "
        "which Dynamo cannot trace: the pieces of layers are not estimated",
        "false, parameters in 16 bits beside adapters in fp32, or no dora");
  return std::nullopt;
}

Problem step_problem(const Model& model, const Plan& plan) {
  if (const Problem found = traced_kernels_problem(model, plan)) return found;
  const OperandCast cast = recipe_of(plan.precision.linear).cast;
  if (cast != OperandCast::none && cast != OperandCast::eager)
    return problem(
        fmt::format("{} inside of a compiled model is not estimated: its casts are kernels "
                    "of their own, which Dynamo does not look into",
                    recipe_of(plan.precision.linear).words),
        "false, or fp8-tensorwise, fp8-rowwise or bf16");
  if (const Problem found = magnitudes_problem(model, plan)) return found;
  if (const Problem found = stored_problem(model, plan)) return found;
  if (model.facts.image.has_tower)
    return problem("compiled networks that read images are not estimated", "false");
  if (has_op(model, [](const Op& op) {
        return op.kind == OpKind::gather_rows || op.kind == OpKind::grouped_linear;
      }))
    return problem(
        "experts in a compiled model are not estimated: what tokens they get breaks "
        "the graph",
        "false");
  if (has_op(model, [](const Op& op) {
        return op.kind == OpKind::masked || op.kind == OpKind::gather_columns ||
               (op.kind == OpKind::to_compute && !op.detached);
      }))
    return problem(
        "constant masks, picked columns and types that the class itself chooses are not "
        "estimated in a compiled model",
        "false");
  if (has_op(model, [](const Op& op) { return op.in_place != InPlace::no; }))
    return problem(
        "layers that write over parts of their tensors are not estimated in a compiled model",
        "false");
  if (convolves_tokens(model))
    return problem(
        "layers that convolve tokens or have a state are not estimated in a compiled model",
        "false");
  if (model.facts.encoder_decoder)
    return problem("compiled models of encoder and decoder are not estimated", "false");
  return policy_problem(plan);
}

}  // namespace

Problem compile_problem(const Model& model, const Plan& plan) {
  if (!plan.compile) return std::nullopt;
  if (plan.workload.kind != WorkKind::train)
    return problem("torch.compile is for training here, and the workload is not",
                   "workload.kind train, or false");
  if (const Problem found = framework_problem(plan)) return found;
  if (const Problem found = graphs_problem(plan)) return found;
  return step_problem(model, plan);
}

}  // namespace shardplan
