// Jobs of the steps that NVIDIA printed in 2025 (data/published/dgx_cloud.json), row by row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "json/document.h"

namespace shardplan::published_clusters {

inline const Json& table() {
  static const Json json = read_json_file(SHARDPLAN_SOURCE_DIR "/data/published/dgx_cloud.json");
  return json;
}

/// A row by the names of its columns.
class Row {
 public:
  explicit Row(const Json& cells) : cells_(cells) {}
  template <typename T = std::int64_t>
  T at(const std::string& column) const {
    const Json& columns = table().at("columns");
    const auto found = std::find(columns.begin(), columns.end(), column);
    return cells_[static_cast<std::size_t>(found - columns.begin())].get<T>();
  }
  std::string text(const std::string& column) const { return at<std::string>(column); }
  /// "llama-70b, H100, bf16"
  std::string family() const {
    const std::string gpu = text("gpu");
    return text("network") + ", " + gpu.substr(0, gpu.find('-')) + ", " + text("precision");
  }

 private:
  const Json& cells_;
};

struct Network {
  const char* type;
  std::int64_t layers, hidden, inner, heads, vocabulary;
};
inline const std::map<std::string, Network> kNetworks = {
    {"llama-8b", {"llama", 32, 4096, 14336, 32, 128256}},
    {"llama-70b", {"llama", 80, 8192, 28672, 64, 128256}},
    {"llama-405b", {"llama", 126, 16384, 53248, 128, 128256}},
    {"nemotron-15b", {"starcoder2", 32, 6144, 24576, 48, 256000}},
    {"nemotron-340b", {"starcoder2", 96, 18432, 73728, 96, 256000}},
    {"grok-1", {"mixtral", 64, 6144, 32768, 48, 131072}},
};

inline Json model_of(const Row& row) {
  const auto found = kNetworks.find(row.text("network"));
  if (found == kNetworks.end()) return row.text("network");
  const Network& n = found->second;
  const std::int64_t layers = row.at("layers") > 0 ? row.at("layers") : n.layers;
  Json model = {{"model_type", n.type},           {"num_hidden_layers", layers},
                {"hidden_size", n.hidden},        {"intermediate_size", n.inner},
                {"num_attention_heads", n.heads}, {"num_key_value_heads", 8},
                {"vocab_size", n.vocabulary},     {"max_position_embeddings", 8192},
                {"tie_word_embeddings", false}};
  if (model["model_type"] == "starcoder2") model["use_bias"] = false;
  if (model["model_type"] == "mixtral") {
    model["num_local_experts"] = 8;
    model["num_experts_per_tok"] = 2;
  }
  return model;
}

/// A GB200's NVLink joins a rack, of which these runs used 64 GPUs.
inline Json cluster_of(const Row& row) {
  const std::int64_t joined = row.text("gpu") == "GB200-186GB" ? 64 : 8;
  const std::int64_t in_node = std::min(joined, row.at("gpus"));
  return {{"gpu", row.text("gpu") == "GB200-186GB" ? "GB200" : row.text("gpu")},
          {"gpus_per_node", in_node},
          {"nodes", row.at("gpus") / in_node}};
}

inline Json job_of(const Row& row) {
  const std::int64_t tensor = row.at("tensor"), pipeline = row.at("pipeline");
  const std::int64_t data = row.at("gpus") / (tensor * pipeline * row.at("context"));
  Json job;
  job["model"] = model_of(row);
  job["cluster"] = cluster_of(row);
  job["framework"] = {{"name", "megatron"}, {"tp_comm_overlap", tensor > 1}};
  job["parallel"] = {{"tensor", tensor},
                     {"pipeline", pipeline},
                     {"virtual_pipeline", row.at("virtual_pipeline")},
                     {"context", row.at("context")},
                     {"expert", row.at("expert")}};
  if (row.at("expert_tensor") > 0 && row.at("expert") > 1)
    job["parallel"]["expert_tensor"] = row.at("expert_tensor");
  if (pipeline > 1 && row.text("network") == "llama-405b")
    job["parallel"]["balance"] = "blocks_and_ends";
  if (row.text("network") == "deepseek-v3") job["parallel"]["balance"] = "parameters";
  job["workload"] = {
      {"micro_batch", row.at("micro_batch")},
      {"sequence_length", row.at("sequence")},
      {"gradient_accumulation",
       std::max<std::int64_t>(1, row.at("global_batch") / (data * row.at("micro_batch")))}};
  job["precision"] = "bf16-master";
  if (row.text("precision") == "fp8")
    job["precision"] = {{"preset", "bf16-master"}, {"linear", "fp8-delayed"}};
  job["checkpointing"] = "none";
  return job;
}

}  // namespace shardplan::published_clusters
