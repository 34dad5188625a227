// What a network ends in: the class that "architectures" names.
#pragma once

#include <cstdint>

namespace shardplan {

enum class HeadKind : std::uint8_t {
  language_model,  ///< ...ForCausalLM, ...ForConditionalGeneration: logits over the vocabulary
  none,            ///< ...Model: the last hidden states
  sequence,        ///< ...ForSequenceClassification: one row of labels a sequence
  token,           ///< ...ForTokenClassification: one row of labels a token
};

struct ModelHead {
  HeadKind kind = HeadKind::language_model;
  std::int64_t labels = 2;
  double dropout = 0;  ///< before the head of tokens
  bool bias = true;    ///< of the head of tokens
};

}  // namespace shardplan
