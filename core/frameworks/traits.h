// What a framework is like: everything that code outside its folder asks about it. Each framework
// has one constant of this type, in its own traits.cpp, and one row in registry.cpp. Nobody asks
// which framework runs a plan; they ask its traits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "frameworks/framework.h"
#include "frameworks/required.h"
#include "optimizers/given.h"
#include "parallel/support.h"
#include "plan/compile.h"
#include "plan/mlp_tiles.h"

namespace shardplan {

class CommunicatorList;
struct Model;
enum class Category : std::uint8_t;
template <typename Root>
struct OptionTable;
struct BuildOptions;
struct Calibration;
struct DivisionProblem;
struct HostMemory;
struct KeptWeightsPass;
struct ModelRun;
struct Plan;
struct ProcessOverhead;
struct Program;
class ProgramBuilder;
struct Regime;
struct SavedInput;
struct SaveRules;
struct Segment;
struct TapeOptions;

/// How a framework cuts the layers of a network.
enum class SplitStyle : std::uint8_t {
  megatron,      ///< every linear, the vocabulary too; one exchange for a layer's input
  transformers,  ///< tp_plan on DTensors: each linear exchanges its own input's gradient
  autotp,        ///< DeepSpeed: tp_plan where the class has one, in-place exchanges
};

/// How ranks that share experts exchange tokens.
enum class ExpertExchange : std::uint8_t {
  dispatcher,   ///< Megatron-LM's: permuted, sent, and back
  autoep,       ///< DeepSpeed's AutoEP
  slots,        ///< layers that say it themselves: as many slots arrive as leave
  reordered,    ///< torchtitan's: rows are put in order again where they arrive (FSDP2)
  gathered,     ///< NeMo Automodel's with PyTorch's collectives: all tokens on every rank (FSDP2)
  same_tokens,  ///< transformers': no exchange, each rank has all tokens (tensor_split.h)
};

/// How keys and values of the ranks that share a sequence reach each of them.
enum class KeyExchange : std::uint8_t {
  ring,           ///< Transformer Engine's: passed on beside one attention
  blocks_all,     ///< PyTorch's context_parallel: gathered at once, read block by block
  blocks_passed,  ///< the same with blocks passed on by an all-to-all
};

/// What a framework can divide, and what of that can be estimated.
struct DegreeSupport {
  Required<Support> tensor, pipeline, virtual_pipeline, sequence, context, expert;

  constexpr Support of(Degree degree) const {
    const std::array<Support, kDegreeNames.size()> all{tensor,   pipeline, virtual_pipeline,
                                                       sequence, context,  expert};
    return all[static_cast<std::size_t>(degree)];
  }
};

/// How a trainer other than a loop of one's own (trainers/description.h) calls a framework.
enum class UnderTrainer : std::uint8_t {
  never,      ///< it is a program of its own
  autocast,   ///< the model's forward runs under the trainer's autocast
  policy,     ///< it casts by a policy of its own; few trainers have autocast around that
  precision,  ///< the engine has a precision of its own
};

/// A collective in two hops: GPUs of a node, then the same place in several nodes. No ranks: in
/// one.
struct HopRanks {
  std::int64_t in_node = 0, across_nodes = 0;
};

struct FrameworkTraits {
  Required<FrameworkKind> kind;
  Required<std::string_view> name;   ///< in job files
  Required<std::string_view> label;  ///< in windows
  std::string_view spoken = {};      ///< other words for it, blanks between
  Required<const OptionTable<Framework>*> options;

  // ---- What a job cannot ask of it; nothing when it can be run and estimated.
  /// Of its options alone; keys are those of `framework`.
  Required<std::optional<DivisionProblem> (*)(const Framework&)> options_problem;
  Required<std::optional<DivisionProblem> (*)(const Plan&)> plan_problem;

  // ---- How a network is divided.
  DegreeSupport degrees;
  Required<SplitStyle> split;
  Required<ExpertExchange (*)(const Plan&)> experts;
  Required<KeyExchange (*)(const Plan&)> keys;
  /// Whether copies of the network train together at all.
  Required<bool> data_parallel;
  /// Whether tensor-parallel ranks can keep parts of the tokens, and do unless told otherwise.
  Required<bool> divides_tokens;
  /// Whether tensor-parallel ranks can divide an expert, and do unless told otherwise.
  Required<bool> divides_experts;
  /// Whether tensor, context and pipeline degrees divide the text model behind a tower of images,
  /// which is whole on each rank, or on each of the first stage.
  bool divides_behind_towers = false;
  Required<StageBalance> balance;  ///< of pipeline stages, unless told otherwise
  /// Of a network that reads images, every GPU of the first stage runs the whole tower before the
  /// text model's layers, which are divided.
  bool runs_towers_whole = false;
  /// Stages are torch.distributed.pipelining's: in a V too, and of blocks that do not come out
  /// even.
  bool torch_pipelining = false;
  /// The workspace of autograd's thread comes with the first product of the first backward pass,
  /// where nothing multiplied before (TrainerDescription::starts_cold): seen in histories of
  /// allocations. Elsewhere it is taken to be there from the beginning.
  Required<bool (*)(const Plan&)> makes_workspace_late;
  /// What is wrong with a plan's pipeline or with its shard groups; nothing when both can be run
  /// and estimated.
  Required<std::optional<DivisionProblem> (*)(const Plan&)> pipeline_problem;
  Required<std::optional<DivisionProblem> (*)(const Model&, const Plan&)> sharding_problem;
  /// What it changes of the way a network is built.
  Required<void (*)(const Plan&, BuildOptions&)> build;

  // ---- Element types.
  /// Weights of experts can be stored in the format of the base under adapters.
  bool quantizes_experts = false;
  Required<Regime (*)(const Plan&)> regime;
  Required<std::string_view> default_precision;  ///< of training: a preset
  Required<std::string_view> lora_precision;     ///< the same under LoRA
  /// Whether linears can multiply in formats of their own (precision.linear).
  Required<bool> takes_recipes;
  /// How much of its steps torch.compile may take in one piece; absent: they are not estimated.
  Required<std::optional<CompileScope>> compiles;
  /// Bytes of parameters at which Dynamo cuts the graph of a whole model, to let gradients be
  /// exchanged before all are there; 0: it does not.
  Required<std::int64_t (*)(const Plan&)> graph_bytes;
  /// Whether hooks around every module break the graph of a whole model.
  Required<bool (*)(const Plan&)> breaks_at_modules;
  /// Whether hooks around every block do, so that each block is a graph.
  Required<bool (*)(const Plan&)> breaks_at_blocks;
  /// Whether CUDA graphs of compiled steps are estimated, whose pool its gradients lie in.
  Required<bool (*)(const Plan&)> records_graphs;
  /// Whether 16-bit parameters always have master weights beside them.
  Required<bool> keeps_master;
  /// Whether a policy of its own casts parameters while they are used: FSDP's.
  Required<bool> casts_by_policy;

  /// Whether each micro-batch of an accumulation reduces its gradients, where a job says it.
  Required<std::optional<bool> (*)(const Plan&)> sync_each_batch;
  Required<UnderTrainer> under_trainer;

  // ---- Model states.
  /// Whether ZeRO's options (Framework::deepspeed) decide how states are kept.
  Required<bool> has_zero;
  /// Ranks that one copy of the states is divided over: all replicas, or fewer.
  Required<std::int64_t (*)(const Plan&)> shard_ranks;
  /// Ranks that one category of them is divided over; 1: each keeps all of it.
  Required<std::int64_t (*)(const Plan&, Category)> divided_over;
  /// As what parameters reach the optimizer.
  Required<Given> given;
  /// Whether parameters are kept in shards and gathered for use.
  Required<bool (*)(const Plan&)> shards_parameters;

  /// Whether parameters and states are asked for one by one, in the order that programs say, and
  /// stay where they are: what is too small to be split off their blocks is allocated too.
  bool places_states = false;

  // ---- Groups of ranks.
  /// Ranks of a shard group; 0: there is no such group beside the data ranks'.
  Required<std::int64_t (*)(const Plan&)> shard_group;
  Required<HopRanks (*)(const Plan&)> hops;
  Required<void (*)(CommunicatorList&, const Plan&)> communicators;
  /// CUDA contexts that other ranks' processes keep on the fullest GPU.
  Required<std::int64_t (*)(const Plan&)> foreign_contexts;

  // ---- Passes over a network.
  Required<void (*)(const Plan&, const Segment&, TapeOptions&)> set_tape;
  Required<TiledMlps> tiled_mlps;
  /// Whether selective checkpointing runs blocks again; else only the attention itself.
  Required<bool> selective_runs_blocks;
  /// A policy that it cannot run, or that cannot be estimated under it.
  Required<std::optional<DivisionProblem> (*)(const Plan&)> checkpoint_problem;
  /// How checkpointed blocks keep their inputs, what is held on the GPU beside those of the blocks
  /// that have run, and what waits on the host.
  Required<SavedInput (*)(const Plan&)> saved_input;
  Required<std::int64_t (*)(const Plan&, const ModelRun&)> held_inputs;
  Required<HostMemory (*)(const Plan&, const ModelRun&)> inputs_on_host;
  /// Whether passes read parameters where the model had them before the framework took it over:
  /// hooks that tell parameters by their storage leave them alone.
  Required<bool> parameters_stay;
  /// Whether tables that blocks share are made once and kept.
  Required<bool> keeps_tables;
  /// Whether a pipeline stage lets go of what it has sent.
  Required<bool> frees_sent;

  // ---- The step.
  Required<Program (*)(const Model&, const Plan&, const ModelRun&, std::int64_t rank)> lower;
  /// The ranks whose programs differ enough that one of them may be the worst. Rank 0 comes first.
  Required<std::vector<std::int64_t> (*)(const Model&, const Plan&)> distinct_ranks;
  /// Ranks that hold as much as this one, of which some may be in other pieces: the allocator finds
  /// other places for them, and may cache more.
  Required<std::vector<std::int64_t> (*)(const Plan&, std::int64_t rank)> cut_otherwise;
  /// A pass without autograd, which gathers what it needs and lets go of it. Returns the bytes of
  /// parameters that the framework would leave gathered until the next training step's backward
  /// pass, where this pass has gathered them.
  Required<std::int64_t (*)(ProgramBuilder&, const KeptWeightsPass&)> emit_inference;
  /// What stays between such passes of a model that nothing trains.
  Required<void (*)(Program&, const KeptWeightsPass&)> add_frozen;

  /// Which files a checkpoint of a run is.
  Required<SaveRules (*)(const Plan&)> saves;

  // ---- Calibration.
  Required<ProcessOverhead Calibration::*> process;
  /// Whether programs may connect more ranks than the step needs.
  Required<bool> connects_more;

  // ---- What else it runs.
  Required<bool> generates;
  Required<bool> quantizes_generation;
  Required<bool> runs_rlhf;
  /// Preference training scores with the reference before the trained model's forward pass.
  Required<bool> scores_first;
  Required<bool> has_hybrid_engine;  ///< one engine that trains and generates
  Required<bool> is_own_engine;      ///< shardplan-validate runs it
  /// A sharded state_dict copies the shards, unit after gathered unit.
  bool copies_state_dict = false;
};

}  // namespace shardplan
