#include "import/python_trainer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/python_program.h"

namespace shardplan::importing {
namespace {

struct Renamed {
  std::string_view keyword;
  std::string_view key;
};

/// peft's LoraConfig (0.19), and get_peft_model of Unsloth's classes.
constexpr std::array kAdapterKeys{Renamed{"r", "lora_r"},
                                  Renamed{"lora_alpha", "lora_alpha"},
                                  Renamed{"lora_dropout", "lora_dropout"},
                                  Renamed{"target_modules", "lora_target_modules"},
                                  Renamed{"target_parameters", "lora_target_parameters"},
                                  Renamed{"modules_to_save", "lora_modules_to_save"},
                                  Renamed{"use_rslora", "use_rslora"},
                                  Renamed{"use_dora", "use_dora"},
                                  Renamed{"use_gradient_checkpointing", "gradient_checkpointing"}};

/// from_pretrained of a model's class; the last ones are Unsloth's (unsloth/models/loader.py).
constexpr std::array kModelKeys{Renamed{"", "model_name_or_path"},
                                Renamed{"model_name", "model_name_or_path"},
                                Renamed{"pretrained_model_name_or_path", "model_name_or_path"},
                                Renamed{"torch_dtype", "torch_dtype"},
                                Renamed{"dtype", "torch_dtype"},
                                Renamed{"attn_implementation", "attn_implementation"},
                                Renamed{"load_in_4bit", "load_in_4bit"},
                                Renamed{"load_in_8bit", "load_in_8bit"},
                                Renamed{"max_seq_length", "model_max_length"},
                                Renamed{"fast_inference", "use_vllm"},
                                Renamed{"gpu_memory_utilization", "vllm_gpu_memory_utilization"}};

/// transformers' BitsAndBytesConfig.
constexpr std::array kQuantizationKeys{
    Renamed{"load_in_4bit", "load_in_4bit"},
    Renamed{"load_in_8bit", "load_in_8bit"},
    Renamed{"bnb_4bit_quant_type", "bnb_4bit_quant_type"},
    Renamed{"bnb_4bit_use_double_quant", "bnb_4bit_use_double_quant"},
    Renamed{"bnb_4bit_compute_dtype", "bnb_4bit_compute_dtype"},
    Renamed{"bnb_4bit_quant_storage", "bnb_4bit_quant_storage"}};

/// What a trainer of TRL's takes itself, or took before its configurations did.
constexpr std::array kTrainerKeys{Renamed{"model", "model_name_or_path"},
                                  Renamed{"max_seq_length", "max_seq_length"},
                                  Renamed{"packing", "packing"}, Renamed{"beta", "beta"},
                                  Renamed{"max_prompt_length", "max_prompt_length"}};

constexpr std::array<std::string_view, 9> kAlgorithms{"SFT", "DPO",    "GRPO", "KTO",      "ORPO",
                                                      "CPO", "Reward", "GKD",  "AsyncGRPO"};

std::string_view attribute_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

/// "trl dpo" of DPOTrainer and DPOConfig; "" of others.
std::string trl_command(std::string_view name) {
  for (const std::string_view algorithm : kAlgorithms)
    if (name.starts_with(algorithm) && (name.ends_with("Trainer") || name.ends_with("Config")))
      return "trl " + lower(algorithm);
  return "";
}

bool is_configuration(std::string_view name) {
  const bool of_texts = !name.starts_with("SentenceTransformer");  // else an embedding is trained
  return (name.ends_with("TrainingArguments") && of_texts) ||
         (name.ends_with("Config") && trl_command(name) != "");
}

/// AutoModelForCausalLM, LlamaForCausalLM, FastLanguageModel; not PeftModel's, whose base was
/// loaded before.
bool loads_model(const PythonCall& call) {
  if (attribute_of(call.name) != "from_pretrained") return false;
  const std::string_view owner = std::string_view(call.name).substr(0, call.name.rfind('.'));
  const bool model = owner.find("Model") != owner.npos || owner.find("For") != owner.npos;
  return model && owner.find("Peft") == owner.npos;
}

bool is_of_unsloth(const PythonCall& call) {
  return call.name.starts_with("Fast");
}

/// One program's trainers, as its calls come by.
class Trainers {
 public:
  explicit Trainers(const std::string& file) {
    shared_.file = file;
    shared_.value = Json::object();
  }

  void read(const PythonCall& call) {
    const std::string_view name = attribute_of(call.name);
    if (is_configuration(name)) return add_trainer(call);
    if (loads_model(call)) return take_model(call);
    if (name == "LoraConfig" || (name == "get_peft_model" && has(call, "r")))
      return take_lora(call);
    if (name == "BitsAndBytesConfig") return take(shared_, call, kQuantizationKeys);
    // peft's enables it unless told otherwise; models of transformers have the other.
    if (name.starts_with("prepare_model_for_") || name == "gradient_checkpointing_enable")
      if (!is_false(call, "use_gradient_checkpointing"))
        put(shared_, "gradient_checkpointing", true, call.line);
    if (name.ends_with("Trainer")) take_trainer(call, name);
  }

  std::vector<Document> finish() {
    for (Document& trainer : trainers_) {
      // A length of Unsloth's is the model's; a configuration may have its own.
      const bool own =
          trainer.value.contains("max_length") || trainer.value.contains("max_seq_length");
      for (const auto& [key, value] : shared_.value.items())
        if (!(own && key == "model_max_length"))
          put(trainer, key, value, shared_.positions.find(key).line);
      for (const std::string& key : shared_.unset)
        if (!own || key != "model_max_length") trainer.unset.insert(key);
    }
    return std::move(trainers_);
  }

 private:
  static bool has(const PythonCall& call, std::string_view keyword) {
    return std::ranges::find(call.arguments, keyword, &PythonCall::Argument::name) !=
           call.arguments.end();
  }
  static bool is_value(const PythonCall& call, std::string_view keyword, bool truth) {
    return std::ranges::any_of(call.arguments, [&](const PythonCall::Argument& a) {
      return a.name == keyword && a.value && *a.value == truth;
    });
  }
  static bool is_false(const PythonCall& call, std::string_view keyword) {
    return is_value(call, keyword, false);
  }

  /// The first value counts: what comes behind the training loads what it has made.
  static void put(Document& document, const std::string& key, const Json& value, int line) {
    if (value.is_null() || document.value.contains(key)) return;
    document.value[key] = value;
    document.positions.add(key, {line, 1});
  }
  static void put(Document& document, const std::string& key, const PythonCall::Argument& a) {
    if (a.value) return put(document, key, *a.value, a.line);
    // A model that a program makes is the one that it has loaded.
    if (document.value.contains(key) || key == "model_name_or_path") return;
    document.unset.insert(key);
    put(document, key, true, a.line);
  }

  template <std::size_t N>
  static void take(Document& document, const PythonCall& call, const std::array<Renamed, N>& keys) {
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const PythonCall::Argument& argument = call.arguments[i];
      if (argument.name.empty() && i > 0) continue;
      const auto known = std::ranges::find(keys, argument.name, &Renamed::keyword);
      if (known != keys.end()) put(document, std::string(known->key), argument);
    }
  }

  void take_model(const PythonCall& call) {
    if (shared_.value.contains("model_name_or_path")) return;
    take(shared_, call, kModelKeys);
    take_packed_name(call.line);
    if (!is_of_unsloth(call)) return;
    put(shared_, "use_unsloth", true, call.line);
    const bool whole = is_value(call, "full_finetuning", true) ||
                       is_value(call, "load_in_8bit", true) ||
                       is_value(call, "load_in_16bit", true);
    put(shared_, "load_in_4bit", !whole, call.line);  // loader.py: 4 bits unless told otherwise
    put(shared_, "bnb_4bit_use_double_quant", true, call.line);
  }

  /// "unsloth/Llama-3.2-1B-bnb-4bit": a checkpoint that bitsandbytes has packed.
  void take_packed_name(int line) {
    const auto found = shared_.value.find("model_name_or_path");
    if (found == shared_.value.end() || !found->is_string()) return;
    std::string name = *found;
    if (!name.ends_with("-bnb-4bit")) return;
    for (const std::string_view end : {"-bnb-4bit", "-unsloth"})
      if (name.ends_with(end)) name.erase(name.size() - end.size());
    *found = name;
    put(shared_, "load_in_4bit", true, line);
    put(shared_, "bnb_4bit_use_double_quant", true, line);
  }

  void take_lora(const PythonCall& call) {
    if (shared_.value.contains("use_lora")) return;
    put(shared_, "use_lora", true, call.line);
    take(shared_, call, kAdapterKeys);
    put(shared_, "lora_dropout", 0.0, call.line);  // peft's default, which TRL's script has not
  }

  void add_trainer(const PythonCall& call) {
    Document& trainer = trainers_.emplace_back();
    trainer.file = shared_.file;
    trainer.value = Json::object();
    trainer.program = trl_command(attribute_of(call.name));
    if (trainer.program.empty()) trainer.program = std::string(attribute_of(call.name));
    for (const PythonCall::Argument& argument : call.arguments)
      if (!argument.name.empty()) put(trainer, argument.name, argument);
  }

  void take_trainer(const PythonCall& call, std::string_view name) {
    if (trainers_.empty()) return;
    const std::string command = trl_command(name);
    if (command.empty()) return;
    trainers_.back().program = command;
    take(trainers_.back(), call, kTrainerKeys);
  }

  Document shared_;  ///< the model and its adapters, of which a program has one as a rule
  std::vector<Document> trainers_;
};

std::string text_of(const Json& source) {
  if (source.is_string()) return source.get<std::string>();
  std::string text;
  if (source.is_array())
    for (const Json& line : source)
      if (line.is_string()) text += line.get<std::string>();
  return text;
}

/// A notebook's cells by what runs them.
struct Cells {
  std::string python, shell;
  std::vector<std::string> files;  ///< that cells write

  void add(const std::string& cell) {
    const std::string_view first = std::string_view(cell).substr(0, cell.find('\n'));
    const std::string rest = first.size() < cell.size() ? cell.substr(first.size() + 1) : "";
    if (first.starts_with("%%writefile")) return files.push_back(rest);
    if (first.starts_with("%%bash") || first.starts_with("%%sh")) {
      shell += rest + "\n";
      return;
    }
    bool continued = false;
    for (std::size_t at = 0; at < cell.size();) {
      const std::size_t end = std::min(cell.find('\n', at), cell.size());
      const std::string line = cell.substr(at, end - at);
      at = end + 1;
      const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
      const bool starts = begin < line.size() && line[begin] == '!';
      if (starts || continued) {
        shell += line.substr(starts ? begin + 1 : 0) + "\n";
        continued = line.ends_with("\\");
        python += "\n";
      } else {
        python += (begin < line.size() && line[begin] == '%' ? "" : line) + "\n";
      }
    }
  }
};

}  // namespace

bool is_python(std::string_view text) {
  bool imports = false;
  for (std::size_t at = 0; at < text.size() && !imports;
       at = std::min(text.find('\n', at), text.size() - 1) + 1) {
    const std::string_view line =
        text.substr(at, std::min<std::size_t>(200, text.find('\n', at) - at));
    imports = line.starts_with("import ") ||
              (line.starts_with("from ") && line.find(" import ") != line.npos);
  }
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool other = first.starts_with("#!") && first.find("python") == first.npos;
  return imports && !other && text.find('(') != text.npos;
}

std::vector<Document> trainers_of_program(std::string_view text, const std::string& file) {
  Trainers trainers(file);
  for (const PythonCall& call : python_calls(text)) trainers.read(call);
  return trainers.finish();
}

bool is_notebook(const Json& value) {
  return value.is_object() && value.contains("nbformat") && value.contains("cells") &&
         value.at("cells").is_array();
}

std::vector<Document> documents_of_notebook(const Json& notebook, const std::string& file) {
  Cells cells;
  for (const Json& cell : notebook.at("cells"))
    if (cell.is_object() && cell.value("cell_type", Json()) == "code" && cell.contains("source"))
      cells.add(text_of(cell.at("source")));
  std::vector<Document> found = trainers_of_program(cells.python, file);
  if (found.empty()) found = parse_script(cells.shell, file);
  for (const std::string& written : cells.files)
    if (found.empty()) found = parse_documents(written, file);
  if (found.empty())
    throw InputError({.file = file,
                      .message = "a notebook that makes no TrainingArguments and no configuration "
                                 "of TRL's, and starts no training program",
                      .expected = "the command or the file of what it trains"});
  for (Document& document : found) document.positions = {};  // lines of the cells, not of the file
  return found;
}

}  // namespace shardplan::importing
