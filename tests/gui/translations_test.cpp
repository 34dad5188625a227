// What tr() answers in each language: the store's words, whichever class asks. That the store has
// every text of the windows is tested with the store (tests/planner/words_test.cpp).
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QLocale>
#include <QRegularExpression>

#include "gui_testing.h"
#include "models/asked_question.h"
#include "models/core_words.h"
#include "models/messages.h"
#include "models/word_translator.h"

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

/// Small words that every English sentence has, and no name or value.
bool has_english(const QString& message) {
  static const QRegularExpression kSmallWords(
      QStringLiteral("\\b(the|is|are|not|of|an|or|such|expected|found|unknown|cannot|has|no|must|"
                     "with|between|from)\\b"));
  QString plain = message;
  // What a person typed, and names of fields, stay as they are.
  plain.remove(QRegularExpression(QStringLiteral("'[^']*'|\"[^\"]*\"|「[^」]*」")));
  return plain.contains(kSmallWords);
}

TEST_F(Translations, OfMistakesAreWhole) {
  EXPECT_TRUE(has_english(QStringLiteral("'x' is no model")));
  const char* const kMistakes[] = {
      R"({"model": "llama-2-7c", "cluster": "4x40GB"})",
      R"({"model": "/nowhere/config.json", "cluster": "4x40GB"})",
      R"({"model": 7, "cluster": "4x40GB"})",
      R"({"model": "gpt2", "cluster": "banana"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"sequence_length": 0}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"micro_batch": "many"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "deepsped"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "precision": "fp7"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "optimizer": "adamx"})",
      R"({"model": "t5-base", "cluster": "4x40GB", "framework": "native"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "parallel": {"tensor": 5}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "native", "attention": "eager"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": "native", "optimizer": "sgd"})",
      R"({"model": "gpt2", "cluster": "4x40GB", "workload": {"method": "lora"}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB", "framework": "native",
          "workload": {"method": "lora"}, "parallel": {"tensor": 2}})",
      R"({"model": "llama-3.2-1b", "cluster": "4x40GB", "framework": {"name": "native",
          "zero_stage": 2, "offload_optimizer": "cpu"}, "workload": {"method": "lora"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "native", "zero_stage": 1,
          "offload_param": "cpu", "offload_optimizer": "cpu"}})",
      R"({"model": "gpt2", "cluster": "4x40GB", "framework": {"name": "native", "zero_stage": 2},
          "parallel": {"pipeline": 2}})",
      R"({"model": "t5-base", "cluster": "4x40GB", "compile": true})",
      R"({"model": "gpt2", "cluster": "4x40GB", "unheard_of": 1})"};
  for (const char* language : {"ja", "ko"}) {
    QLocale::setDefault(QLocale(QLatin1String(language)));
    for (const char* mistake : kMistakes) {
      Session session;
      ask(session, mistake);
      ASSERT_TRUE(session.answer().error) << mistake;
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

}  // namespace
}  // namespace shardplan::gui
