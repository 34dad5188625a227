#include "checkpoint/identity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "base/fnv.h"

namespace shardplan::validator {
namespace {

Json network_json(const DecoderSpec& s) {
  Json out{{"family", s.family},
           {"layers", s.layers},
           {"hidden", s.hidden},
           {"inner", s.inner},
           {"query_heads", s.query_heads},
           {"key_value_heads", s.key_value_heads},
           {"head_dim", s.head_dim},
           {"vocabulary", s.vocabulary},
           {"positions", s.positions},
           {"norm", s.norm == NormKind::rms ? "rms" : "layer"},
           {"epsilon", s.epsilon},
           {"activation", static_cast<int>(s.activation)},
           {"biases", {s.qkv_bias, s.output_bias, s.mlp_bias}},
           {"head_norms", s.head_norms},
           {"tied", s.tied}};
  if (s.rotary) {
    out["rotary"] = {{"theta", s.rotary->theta}};
    if (const auto& scaling = s.rotary->scaling)
      out["rotary"]["scaling"] = {scaling->factor, scaling->by_wavelength,
                                  scaling->low_frequency_factor, scaling->high_frequency_factor,
                                  scaling->original_positions};
  }
  if (s.experts)
    out["experts"] = {{"count", s.experts->count},
                      {"per_token", s.experts->per_token},
                      {"renormalised", s.experts->renormalised},
                      {"balance", s.experts->balance}};
  if (s.experts && s.experts->evenly) out["experts"]["evenly"] = true;
  if (s.lora)
    out["lora"] = {{"rank", s.lora->rank},
                   {"scale", s.lora->scale},
                   {"targets", s.lora->targets},
                   {"base", static_cast<int>(s.lora->base)}};
  if (s.lora && s.lora->base_of_experts) out["lora"]["base_of_experts"] = true;
  if (s.lora && !s.lora->parameters.empty()) out["lora"]["parameters"] = s.lora->parameters;
  return out;
}

Json network_json(const MlpSpec& s) {
  return {{"widths", s.widths}};
}

Json optional_name(const std::optional<DType>& dtype) {
  return dtype ? Json(name_of(*dtype)) : Json();
}

std::string fingerprint(const std::vector<std::int32_t>& tokens) {
  Fnv hash;
  for (const std::int32_t token : tokens) hash.add(static_cast<std::uint32_t>(token));
  return fmt::format("{:016x}", hash.value());
}

std::string shown(const Json* value) {
  return value == nullptr ? "nothing" : value->dump();
}

const Json* member(const Json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

}  // namespace

Json identity_of(const EngineJob& job) {
  const TrainingOptions& t = job.training;
  const Workload& w = job.plan().workload;
  const Parallel& p = job.plan().parallel;
  Json precision{{"parameters", name_of(t.dtype)},
                 {"master", optional_name(t.optimizer.master)},
                 {"moments", name_of(t.optimizer.states)}};
  if (const LinearRecipe linear = job.plan().precision.linear; linear != LinearRecipe::computed)
    precision["linear"] = name_of(linear);
  return {{"model", std::visit([](const auto& s) { return network_json(s); }, job.network)},
          {"precision", std::move(precision)},
          {"ranks", job.plan().cluster.world()},
          {"zero_stage", t.stage},
          {"parallel",
           {{"tensor", p.tensor},
            {"context", p.context},
            {"expert", p.expert},
            {"pipeline", p.pipeline},
            {"virtual_pipeline", p.virtual_pipeline}}},
          {"micro_batch", w.micro_batch},
          {"sequence_length", w.sequence_length},
          {"gradient_accumulation", w.gradient_accumulation},
          {"capacity_factor", job.plan().framework.native.capacity_factor},
          {"delayed_update", t.offload.delayed},
          {"seed", t.seed}};
}

Json identity_of(const Tokens& tokens) {
  if (tokens == nullptr) return {{"tokens", 0}};  // a perceptron's samples are made by the seed
  return {{"tokens", tokens->size()}, {"fingerprint", fingerprint(*tokens)}};
}

void check_same(const std::string& file, const std::string& key, const Json& saved,
                const Json& wanted) {
  if (saved == wanted) return;
  if (saved.is_object() && wanted.is_object()) {
    for (const auto& [name, value] : wanted.items()) {
      const Json* const there = member(saved, name);
      check_same(file, key + "." + name, there == nullptr ? Json() : *there, value);
    }
    for (const auto& [name, value] : saved.items())
      if (member(wanted, name) == nullptr) check_same(file, key + "." + name, value, Json());
    return;
  }
  throw InputError({.file = file,
                    .key = key,
                    .message = fmt::format("the job has {}, and goes on from a checkpoint of "
                                           "another run",
                                           shown(wanted.is_null() ? nullptr : &wanted)),
                    .expected = shown(saved.is_null() ? nullptr : &saved)});
}

}  // namespace shardplan::validator
