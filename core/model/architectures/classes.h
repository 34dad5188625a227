// Which classes of transformers a model type has, and which of them a configuration names.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/config.h"
#include "model/heads.h"

namespace shardplan {

/// Sets of class names, by what follows the stem.
enum ClassSet : std::uint16_t {
  kCausalClass = 1,        ///< ForCausalLM, LMHeadModel
  kBaseClass = 2,          ///< Model, TextModel
  kSequenceClass = 4,      ///< ForSequenceClassification with a head "score" without bias
  kTokenClass = 8,         ///< ForTokenClassification with a head "score"
  kConditionalClass = 16,  ///< ForConditionalGeneration
  kMaskedClass = 64,       ///< ForMaskedLM
  kSpeechClass = 128,      ///< ForCTC
  kPairClass = 256,        ///< Model, of two encoders with a loss of their own
  kFrameClass = 512,       ///< ForAudioFrameClassification
  kReadByBuilder = 32,     ///< the family's builder reads "architectures" itself
  kDecoderClasses = kCausalClass | kBaseClass,
  kScoringClasses = kDecoderClasses | kSequenceClass,
  kAllClasses = kScoringClasses | kTokenClass,
  kSpeechClasses = kSpeechClass | kBaseClass | kSequenceClass | kFrameClass,
  kEncoderClasses = kMaskedClass | kBaseClass | kSequenceClass | kTokenClass,
};

struct ModelClasses {
  std::string_view stem;             ///< "Llama" of LlamaForCausalLM
  std::string_view base = "model.";  ///< in front of the base model's parameters; ...Model has none
  std::uint16_t known = kDecoderClasses;
};

/// The head of the class that "architectures" names; without that key a language model's, where
/// the type has a class with one.
/// Throws InputError naming the class where it is none of `classes`.
ModelHead read_head(const ModelConfig& config, const ModelClasses& classes);

}  // namespace shardplan
