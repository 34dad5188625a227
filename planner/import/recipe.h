// What a user's files say, on the way to a job: fields of the job as far as one key says one, and
// facts that only become fields together (finish.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/note.h"
#include "json/document.h"

namespace shardplan::importing {

/// Where something was said.
struct Origin {
  std::string file;
  std::string key;
  int line = 0;
};

/// How weights are kept once a training program has loaded them.
struct Weights {
  std::string dtype;            ///< as loaded: "fp32", "bf16", "fp16"; "": nothing said
  bool trained_fp32 = false;    ///< what is trained is cast to fp32 whatever was loaded
  bool kept_in_shards = false;  ///< FSDP2 shards them in the type in which they were loaded
  bool left_by_zero3 = false;   ///< no cast behind zero.Init: ZeRO-3 has them as they were loaded
};

struct Recipe {
  Json job = Json{{"schema", "shardplan.job/1"}};
  std::map<std::string, Origin, std::less<>> origins;  ///< of the job's fields, by pointer
  std::vector<Note> notes;
  /// Fields, by pointer, that a script gives a variable which it does not set, and that nothing
  /// stands for.
  std::vector<std::pair<std::string, Origin>> unset;
  /// Files of the recipe that were understood, each with its kind.
  std::vector<std::pair<std::string, std::string>> kinds;

  // ---- Precision, as trainers say it.
  std::optional<bool> bf16, fp16;
  Weights weights;
  std::string linear;  ///< what linear layers multiply in, by the names of precision.linear; ""
  /// How weights that multiply in fp8 are gathered, which only FSDP2 heeds; "": as others.
  std::string float8_gather;
  /// The trainer keeps to a precision of its own, and `job` has it.
  bool has_precision() const { return job.contains("precision"); }

  std::map<std::string, bool> liger;  ///< kernels by name, beside Liger's usual ones

  // ---- Processes.
  std::optional<std::int64_t> processes;  ///< of all machines
  std::optional<std::int64_t> machines;
  std::optional<std::int64_t> per_machine;
  bool one_process = false;  ///< the program runs as one, whatever GPUs there are

  // ---- Batch.
  std::optional<std::int64_t> global_batch;  ///< sequences of all GPUs in a step

  /// The micro-batch is one of as many sequences as a budget has room for: no GPU takes more than
  /// its part of a step.
  bool micro_batch_at_most = false;

  std::int64_t asked_micro_batch = 0;  ///< said by a flag; 0: not
  std::string asked_ds_config;         ///< the path that a flag says; "": none

  std::optional<std::int64_t> generated;  ///< sequences of all GPUs in an iteration

  // ---- Models.
  bool has_model = false;             ///< said by a flag: no file need say it
  Json asked_model = Json();          ///< what that flag says
  std::string directory;              ///< where relative paths start: of the first file
  Json lora = Json();                 ///< fields of workload.lora; null: full fine-tuning
  bool names_linears = false;         ///< "all-linear" is what the trainer finds and names itself
  Json beside_lora = Json::object();  ///< more of them, which make no job one of LoRA
  /// Parts before a text model that reads images: what the trainer freezes. Absent: nothing is.
  std::optional<bool> frozen_tower, frozen_projector;
  bool texts = false;          ///< the files say that a sample has no image
  std::string packed_in;       ///< bnb_4bit_quant_storage, where a file says it
  std::string algorithm;       ///< of preference training and reinforcement learning; "": none
  Json rlhf = Json::object();  ///< fields of a workload of kind rlhf

  /// Names the algorithm, said at `origin`.
  void take_algorithm(std::string name, const Origin& origin);

  void note(Note note) { notes.push_back(std::move(note)); }
  /// Sets a field that two files may not say differently.
  void set(const std::string& pointer, Json value, const Origin& origin);
  /// Sets a field where no file has said it.
  void set_default(const std::string& pointer, Json value);
  /// The same, with a line for the user.
  void assume(const std::string& pointer, Json value, std::string reason);
  const Json* find(std::string_view pointer) const;
};

}  // namespace shardplan::importing
