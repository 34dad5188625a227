#include "load/training_arguments.h"

#include <cmath>
#include <string_view>

#include "json/reader.h"

namespace shardplan {
namespace {

class Reader {
 public:
  explicit Reader(TrainingArguments& arguments)
      : document_(arguments.document), misread_(arguments.misread) {}

  const Json* find(const char* key) const {
    const auto it = document_.find(key);
    return it == document_.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<std::int64_t> integer(const char* key, std::int64_t least) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_integer() && value->get<std::int64_t>() >= least)
      return value->get<std::int64_t>();
    return wrong(key, *value, "an integer of at least " + std::to_string(least));
  }

  std::optional<double> number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    return wrong(key, *value, "a number");
  }

  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    wrong(key, *value, "true or false");
    return false;
  }

  std::optional<std::string> text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    return wrong(key, *value, "a string");
  }

 private:
  std::nullopt_t wrong(const char* key, const Json& value, std::string expected) {
    misread_.push_back({key, value, std::move(expected)});
    return std::nullopt;
  }

  const Json& document_;
  std::vector<MisreadKey>& misread_;
};

/// TrainingArguments.get_warmup_steps: steps, or a part of all steps; nullopt when those are not
/// known.
std::optional<std::int64_t> warmup_steps(Reader& read, std::optional<std::int64_t> total) {
  const double steps = read.number("warmup_steps").value_or(0);
  const double ratio = steps > 0 && steps < 1 ? steps : read.number("warmup_ratio").value_or(0);
  if (steps >= 1) return static_cast<std::int64_t>(steps);
  if (ratio == 0) return 0;
  if (!total) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(*total) * ratio));
}

}  // namespace

TrainingArguments read_training_arguments(std::string_view text, const std::string& file) {
  TrainingArguments result;
  result.file = file;
  result.positions = find_positions(text);
  result.document = parse_json(text, file);
  ObjectReader(result.document, file);  // an object, or an error
  Reader read(result);

  TrainerArguments& v = result.values;
  result.micro_batch = read.integer("per_device_train_batch_size", 1).value_or(8);
  if (!read.flag("auto_find_batch_size")) v.per_device_train_batch_size = result.micro_batch;
  v.gradient_accumulation_steps = read.integer("gradient_accumulation_steps", 1).value_or(1);
  v.max_grad_norm = read.number("max_grad_norm").value_or(1.0);
  v.learning_rate = read.number("learning_rate").value_or(5e-5);
  v.adam_betas = {read.number("adam_beta1").value_or(0.9),
                  read.number("adam_beta2").value_or(0.999)};
  v.adam_epsilon = read.number("adam_epsilon").value_or(1e-8);
  v.weight_decay = read.number("weight_decay").value_or(0.0);
  if (const auto steps = read.integer("max_steps", -1); steps && *steps > 0) v.total_steps = steps;
  v.warmup_steps = warmup_steps(read, v.total_steps);
  const bool fp16 = read.flag("fp16");
  const bool bf16 = read.flag("bf16");
  v.fp16 = read.flag("fp16_full_eval") || fp16;
  v.bf16 = read.flag("bf16_full_eval") || bf16;

  if (const Json* deepspeed = read.find("deepspeed"); deepspeed && deepspeed->is_string())
    result.deepspeed = deepspeed->get<std::string>();
  result.optimizer = read.text("optim");
  result.scheduler = read.text("lr_scheduler_type");
  result.gradient_checkpointing = read.flag("gradient_checkpointing");
  result.adafactor = read.flag("adafactor") || result.optimizer == "adafactor";
  return result;
}

}  // namespace shardplan
