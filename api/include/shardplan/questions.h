// The questions. Answers, defaults and messages are those of the command line. Any thread may ask.
#pragma once

#include <string>
#include <vector>

#include "shardplan/error.h"
#include "shardplan/estimate.h"
#include "shardplan/export.h"

namespace shardplan::api {

/// Words or a path as the command line takes them ("llama-2-7b", "4xA100-40GB", "job.json"), or
/// what such a file would hold.
class SHARDPLAN_API Document {
 public:
  Document(std::string word_or_path);  // NOLINT(google-explicit-constructor): words are documents
  Document(const char* word_or_path);  // NOLINT(google-explicit-constructor)

  /// JSON or YAML in memory. Errors name it "<name>".
  static Document text(std::string content, const std::string& name = "job");

  const std::string& word() const { return word_; }
  bool has_text() const { return has_text_; }
  const std::string& content() const { return content_; }

 private:
  std::string word_, content_;
  bool has_text_ = false;
};

/// A flag of the command with its value: {"micro_batch", "2"}, {"sequence_length", "8k"},
/// {"cpu_offload", "true"}. A flag that is given twice is an error.
struct Option {
  std::string name;  ///< with '_' or '-', without "--"
  std::string value;
};

/// What a job needs, as `shardplan estimate` answers: `job` is a job file or text, or a trainer's
/// files; a cluster may stand last. Throws Error.
SHARDPLAN_API Estimate estimate(const std::vector<Document>& job,
                                const std::vector<Option>& options = {});

/// Whether a model trains on a cluster, and what would make more room, as `shardplan fit` answers.
/// `model` is a name of the catalogue, a size such as "7B", a config.json or a trainer's file.
/// Throws Error.
SHARDPLAN_API Fit fit(const Document& model, const Document& cluster,
                      const std::vector<Option>& options = {});

}  // namespace shardplan::api
