// A job as the engine runs it: the network, how it is trained, for how long and on what.
#pragma once

#include <optional>
#include <string>

#include "engine/network.h"
#include "engine/trainer.h"
#include "hardware/catalog.h"
#include "job/save_options.h"
#include "json/document.h"
#include "load/job.h"
#include "model/spec.h"
#include "storage/options.h"

namespace shardplan::validator {

struct RunOptions {
  std::int64_t steps = 10;
  std::int64_t warmup = 2;           ///< first steps that are not timed
  std::string data;                  ///< text, tokens in 16 or 32 bits; empty: the built-in text
  std::string weights;               ///< safetensors; empty: random
  std::optional<double> lora_alpha;  ///< of adapters; absent: their rank
  bool balanced_routing = false;     ///< tokens go to all experts alike, whatever the router says
  StorageOptions storage;            ///< of jobs that keep states on NVMe
  bool time_nvme = false;            ///< its folder's disk is timed before the run
  SaveOptions save;
  std::string resume;  ///< a checkpoint, or a folder of checkpoints; empty: the run begins anew
};

/// A rank among those that divide a network.
struct NetworkRank {
  int tensor = 0, context = 0, stage = 0, experts = 0;
};

struct EngineJob {
  Json document;  ///< the job, with what the command line added
  std::string file;
  std::string directory;  ///< relative paths start here
  Job job;                ///< what core makes of it, for the prediction
  NetworkSpec network;
  Keep keep = Keep::everything;
  TrainingOptions training;
  RunOptions run;

  const Plan& plan() const { return job.plan; }
  bool on_host() const { return plan().framework.native.device == NativeDevice::host; }
  /// What blocks keep waits on the host for the backward pass.
  bool keeps_on_host() const { return plan().checkpoint_share.offload; }
  /// Anything of a rank lies in its host's memory.
  bool uses_host() const { return training.offload.states || keeps_on_host(); }
  /// Ranks that share each layer.
  int tensor_ranks() const { return static_cast<int>(plan().parallel.tensor); }
  /// Ranks that share each sequence.
  int context_ranks() const { return static_cast<int>(plan().parallel.context); }
  /// Ranks that divide the experts of each layer.
  int expert_ranks() const { return static_cast<int>(plan().parallel.expert); }
  /// Whether layers have experts.
  bool sparse() const {
    const auto* decoder = std::get_if<DecoderSpec>(&network);
    return decoder != nullptr && decoder->experts;
  }
  /// One rank's part.
  std::unique_ptr<Network> make_network(const NetworkRank& rank) const;
  /// Whether the head's weight is the embedding's.
  bool tied() const;
  /// Whether the first stage of a pipeline and the last sum what they make of a table's gradient.
  bool tied_ends() const { return tied() && !plan().workload.lora; }
};

/// Throws InputError naming what is wrong, or what the engine cannot do.
EngineJob load_engine_job(Json document, const std::string& file, const HardwareCatalog& hardware);

}  // namespace shardplan::validator
