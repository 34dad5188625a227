// What tr() answers in each language: the store's words, whichever class asks. That the store has
// every text of the windows is tested with the store (tests/planner/words).
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QLocale>

#include "english.h"
#include "gui_testing.h"
#include "models/asked_question.h"
#include "models/core_words.h"
#include "models/dropped_file.h"
#include "models/messages.h"
#include "models/word_translator.h"
#include "support/subprocess.h"

namespace shardplan::gui {
namespace {

class Translations : public testing::Test {
 protected:
  Translations() { QCoreApplication::installTranslator(&translator_); }
  ~Translations() override {
    QCoreApplication::removeTranslator(&translator_);
    QLocale::setDefault(QLocale(QStringLiteral("en")));
  }
  static QString in(const char* language, const char* english) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    return QCoreApplication::translate("AnyClass", english);
  }

 private:
  WordTranslator translator_;
};

TEST_F(Translations, AreTheStoresWords) {
  EXPECT_EQ(in("ja", "measured"), QStringLiteral("実測"));
  EXPECT_EQ(in("ko", "measured"), QStringLiteral("실측"));
}

TEST_F(Translations, KeepEnglishWhereItIsChosenOrNothingIsKnown) {
  EXPECT_EQ(in("en", "measured"), QStringLiteral("measured"));
  EXPECT_EQ(in("fr", "measured"), QStringLiteral("measured"));
  EXPECT_EQ(in("ja", "no text of any window"), QStringLiteral("no text of any window"));
}

TEST_F(Translations, OfSeverityAreThoseOfTheStore) {
  QLocale::setDefault(QLocale(QStringLiteral("ja")));
  EXPECT_EQ(words(report::Text{"severity.error", {}}), QStringLiteral("エラー"));
}

TEST_F(Translations, OfMistakesAreWhole) {
  EXPECT_TRUE(has_english(QStringLiteral("'x' is no model")));
  EXPECT_TRUE(has_english(QStringLiteral("5: attention heads 12")));
  EXPECT_FALSE(has_english(QStringLiteral("framework ddp, 'a file', sdpa")));
  const char* const kMistakes[] = {
      R"({"model": "llama-2-7c", "cluster": "4x40GB"})",
      R"({"model": "/nowhere/config.json", "cluster": "4x40GB"})",
      R"({"model": 7, "cluster": "4x40GB"})", R"({"model": "gpt2", "cluster": "banana"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"sequence_length": 0}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"micro_batch": "many"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "deepsped"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "precision": "fp7"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "optimizer": "adamx"})",
      R"({"model": "t5-base", "cluster": "4x40GB", "framework": "native"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "parallel": {"tensor": 5}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "native", "attention": "eager"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "native", "optimizer": "sgd"})",
      R"({"model": "mixtral-8x7b", "cluster": "4x40GB",
          "workload": {"method": "lora", "lora": {"targets": ["w1"]}}})",
      R"({"model": "mixtral-8x7b", "cluster": "4x40GB", "framework": "fsdp2",
          "workload": {"method": "qlora", "lora": {"quantize_experts": true}}})",
      R"({"model": "mixtral-8x7b", "cluster": "4x40GB", "framework": "native",
          "workload": {"method": "lora", "lora": {"quantize_experts": true}}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "native", "zero_stage": 1,
          "offload_param": "cpu", "offload_optimizer": "cpu"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "native", "zero_stage": 2},
          "parallel": {"pipeline": 2}})",
      R"({"model": "t5-base", "cluster": "4x40GB", "compile": true})",
      R"({"model": "gpt2", "cluster": "4x40GB", "unheard_of": 1})",
      // the machine
      R"({"model": "gpt2", "cluster": {"gpu": 7, "gpus_per_node": 4}})",
      R"({"model": "gpt2", "cluster": {"gpu": "A100-40GB", "gpus_per_node": 4, "nodes": 1,
          "intra_node_bandwidth": "InfiniBand NDR"}})",
      R"({"model": "gpt2", "cluster": "4xp4d.24xlarge x"})",
      R"({"model": "gpt2", "cluster": "0xA100-40GB"})",
      R"({"model": "gpt2", "cluster": "2x2x2xA100-40GB"})",
      // what goes together
      R"({"model": "gpt2", "cluster": "4x40GB", "checkpointing": "sometimes"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "checkpointing": {"policy": "blocks"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "checkpointing": {"policy": "full", "every": 2}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "compile": "fast"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "fsdp2",
          "compile": {"mode": "reduce-overhead", "scope": "model"}})",
      R"({"model": "llama-3.2-1b", "cluster": "1xA100-40GB", "framework": "single",
          "precision": {"linear": "fp8-tensorwise"}})",
      R"({"model": "llama-3.2-1b", "cluster": "4xH100-80GB", "framework": "deepspeed",
          "precision": {"linear": "fp8-tensorwise"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "single"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "deepspeed", "precision": "bf16-pure"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "parallel": {"expert": 2}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "megatron", "parallel": {"tensor": 8}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "megatron",
          "parallel": {"sequence_parallel": true}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "megatron",
          "parallel": {"pipeline": 2, "schedule": "interleaved"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "megatron",
          "overlap_param_gather": true, "distributed_optimizer": false}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "checkpointing": "none",
          "framework": {"name": "megatron", "offload_modules": ["attn_proj"]}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "ddp", "loss": "tiled"})",
      R"({"model": "mixtral-8x7b", "cluster": "4x40GB", "framework": "fsdp2",
          "parallel": {"expert": 2, "tensor": 2}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "deepspeed", "zero_stage": 2},
          "parallel": {"pipeline": 2}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB", "framework": {"name": "deepspeed",
          "zero_stage": 3, "ds_config": {"zero_optimization": {"stage": 3}}}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB", "workload": {"lora": {"rank": 8}}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"images": 2}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "kernels": "liger"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "state_kernels": "mamba_ssm"})",
      // generation, preferences and reinforcement learning
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "ddp",
          "workload": {"kind": "inference"}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB", "framework": "single",
          "workload": {"kind": "inference", "engine": "vllm"}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB",
          "workload": {"kind": "inference", "engine": {"name": "vllm", "tensor_parallel": 3}}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB",
          "workload": {"kind": "rlhf", "algorithm": "dpo", "sequence_length": 512,
                       "reference": "base"}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB",
          "workload": {"kind": "rlhf", "algorithm": "grpo", "prompt_length": 64, "new_tokens": 64,
                       "rollout": {"engine": "vllm", "tensor_parallel": 3}}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB",
          "workload": {"kind": "rlhf", "algorithm": "chance"}})"};
  for (const char* language : {"ja", "ko"}) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    for (const char* mistake : kMistakes) {
      Session session;
      ask(session, mistake);
      if (!session.answer().error) {
        ADD_FAILURE() << "no mistake: " << mistake;
        continue;
      }
      const QString message = Messages::of(*session.answer().error);
      EXPECT_FALSE(has_english(message)) << language << ": " << message.toStdString();
    }
    Session session;
    for (const char* typed : {"7B", "llama-2-7c on 4x40GB", "7B on 4x40GB x"})
      EXPECT_FALSE(has_english(
          AskedQuestion::read(QString::fromUtf8(typed), session.workbench().hardware).error))
          << language << ": " << typed;
  }
}

TEST_F(Translations, OfFilesThatCannotBeReadAreWhole) {
  struct Mistaken {
    const char* name;
    const char* text;
  };
  const Mistaken kFiles[] = {
      // no file of its kind; why one is no JSON at all is in the words of its parser
      {"job.json", "{\"model\": \"gpt2\", \"model\": \"gpt2\"}"},
      {"job.json", "{\"a\": 1}"},
      {"hostfile", "worker-1 slots=8\nworker-2 slots=4\n"},
      // trainers' files
      {"accelerate.yaml", "distributed_type: XLA\nmixed_precision: bf16\n"},
      {"accelerate.yaml",
       "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n"},
      {"axolotl.yaml", "base_model: gpt2\nadapter: ia3\nmicro_batch_size: 1\ndatasets: []\n"},
      {"axolotl.yaml", "base_model: gpt2\nload_in_4bit: true\nmicro_batch_size: 1\ndatasets: []\n"},
      {"llamafactory.yaml", "model_name_or_path: gpt2\nstage: ppo\nfinetuning_type: lora\n"},
      {"llamafactory.yaml", "model_name_or_path: gpt2\nstage: sft\nfinetuning_type: galore\n"},
      {"titan.toml", "[model]\nname = \"flux\"\nflavor = \"schnell\"\n[training]\nsteps = 1\n"},
      {"megatron.sh",
       "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 "
       "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 "
       "--optimizer lion --vocab-size 50257\n"},
      // networks
      {"config.json", R"({"model_type": "no_such_network", "hidden_size": 8})"},
      {"config.json", R"({"model_type": "llama", "hidden_size": 100, "num_attention_heads": 3})"},
      {"config.json", R"({"model_type": "llama", "num_hidden_layers": -1})"},
      {"config.json", R"({"model_type": "llama", "hidden_act": "swishy"})"},
      {"config.json", R"({"model_type": "gpt2", "add_cross_attention": true})"},
      {"config.json", R"({"model_type": "bert", "architectures": ["BertForChess"]})"},
      {"config.json", R"({"model_type": "mixtral", "num_experts_per_tok": 9})"},
  };
  const TemporaryFolder folder;
  for (const char* language : {"ja", "ko"}) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    for (const Mistaken& mistaken : kFiles) {
      const std::string path = folder.file(mistaken.name, mistaken.text);
      Session session;
      ask(session, R"({"model": "gpt2", "cluster": "8xA100-40GB"})");
      std::optional<Diagnostic> error;
      try {
        take_file(session.document(), QString::fromStdString(path));
        error = session.answer().error;
      } catch (const InputError& e) {
        error = e.diagnostic();
      }
      if (!error) {
        ADD_FAILURE() << "no mistake: " << mistaken.text;
        continue;
      }
      const QString message = Messages::of(*error);
      EXPECT_FALSE(has_english(message)) << language << ": " << message.toStdString();
    }
  }
}

}  // namespace
}  // namespace shardplan::gui
