#include "model/architectures/classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace shardplan {
namespace {

struct ClassSuffix {
  ClassSet set;
  std::string_view suffix;
  HeadKind head;
  bool usual = true;  ///< named in errors
};

constexpr std::array kSuffixes{
    ClassSuffix{kCausalClass, "ForCausalLM", HeadKind::language_model},
    ClassSuffix{kCausalClass, "LMHeadModel", HeadKind::language_model, false},
    ClassSuffix{kConditionalClass, "ForConditionalGeneration", HeadKind::language_model},
    // T5's name for it before transformers 3.
    ClassSuffix{kConditionalClass, "WithLMHeadModel", HeadKind::language_model, false},
    ClassSuffix{kMaskedClass, "ForMaskedLM", HeadKind::language_model},
    ClassSuffix{kSpeechClass, "ForCTC", HeadKind::language_model},
    ClassSuffix{kBaseClass, "Model", HeadKind::none},
    ClassSuffix{kBaseClass, "TextModel", HeadKind::none, false},
    ClassSuffix{kPairClass, "Model", HeadKind::language_model},
    ClassSuffix{kSequenceClass, "ForSequenceClassification", HeadKind::sequence},
    ClassSuffix{kSequenceClass, "TextForSequenceClassification", HeadKind::sequence, false},
    ClassSuffix{kTokenClass, "ForTokenClassification", HeadKind::token},
    ClassSuffix{kFrameClass, "ForAudioFrameClassification", HeadKind::token},
};

/// "LLaMAForCausalLM" of early conversions is LlamaForCausalLM.
bool same_class(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

ModelHead read_head(const ModelConfig& c, const ModelClasses& classes) {
  const std::vector<std::string> named = c.texts("architectures");
  if (named.empty())
    return {.kind = classes.known == kBaseClass ? HeadKind::none : HeadKind::language_model};
  std::string known;
  for (const ClassSuffix& s : kSuffixes) {
    if ((classes.known & s.set) == 0) continue;
    const std::string name = std::string(classes.stem) + std::string(s.suffix);
    if (s.usual) known += (known.empty() ? "" : ", ") + name;
    if (!same_class(named.front(), name)) continue;
    const std::int64_t listed = c.entries("id2label");
    ModelHead head{.kind = s.head, .labels = c.count({"num_labels"}, listed > 0 ? listed : 2)};
    head.dropout = c.number("classifier_dropout", c.number("hidden_dropout", 0.1));
    head.bias = c.flag("token_classification_bias", true);
    return head;
  }
  c.fail("architectures",
         fmt::format("'{}' is no class that can be counted for model_type '{}'", named.front(),
                     c.text("model_type", "")),
         "one of " + known + ", or no architectures for the first of them");
}

}  // namespace shardplan
