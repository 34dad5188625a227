// What tr() answers in each language: the store's words, whichever class asks. That the store has
// every text of the windows is tested with the store (tests/planner/words_test.cpp).
#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QLocale>

#include "models/core_words.h"
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

}  // namespace
}  // namespace shardplan::gui
