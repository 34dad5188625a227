// The translations: every text that the windows show, in every language, with its placeholders.
#include <gtest/gtest.h>

#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QSet>
#include <QTemporaryDir>
#include <QXmlStreamReader>

namespace shardplan::gui {
namespace {

struct Translation {
  QString context, source, words;
  bool is_unfinished = false;
};

std::vector<Translation> read(const QString& path) {
  QFile file(path);
  EXPECT_TRUE(file.open(QIODevice::ReadOnly)) << path.toStdString();
  std::vector<Translation> all;
  Translation now;
  QXmlStreamReader xml(&file);
  QString context;
  while (!xml.atEnd()) {
    if (xml.readNext() != QXmlStreamReader::StartElement) continue;
    if (xml.name() == QStringLiteral("name")) context = xml.readElementText();
    if (xml.name() == QStringLiteral("source")) now = {context, xml.readElementText(), {}, false};
    if (xml.name() == QStringLiteral("translation")) {
      now.is_unfinished = xml.attributes().hasAttribute(QStringLiteral("type"));
      now.words = xml.readElementText();
      all.push_back(now);
    }
  }
  EXPECT_FALSE(xml.hasError()) << xml.errorString().toStdString();
  return all;
}

QSet<QString> placeholders(const QString& words) {
  static const QRegularExpression kPlace(QStringLiteral("%\\d|<br>|<b>|</b>"));
  QSet<QString> out;
  for (auto it = kPlace.globalMatch(words); it.hasNext();) out.insert(it.next().captured());
  return out;
}

class Translations : public testing::TestWithParam<const char*> {
 protected:
  static QString file() {
    return QStringLiteral(SHARDPLAN_SOURCE_DIR "/gui/translations/shardplan_%1.ts")
        .arg(QLatin1String(GetParam()));
  }
};

TEST_P(Translations, AreFinishedAndKeepTheirPlaceholders) {
  const std::vector<Translation> all = read(file());
  EXPECT_GT(all.size(), 150U);
  for (const Translation& t : all) {
    EXPECT_FALSE(t.is_unfinished || t.words.isEmpty()) << t.source.toStdString();
    EXPECT_EQ(placeholders(t.source), placeholders(t.words)) << t.source.toStdString();
  }
}

TEST_P(Translations, CoverEveryTextOfTheSources) {
  const QTemporaryDir folder;
  const QString fresh = folder.filePath(QStringLiteral("fresh.ts"));
  QProcess lupdate;
  lupdate.start(QStringLiteral(SHARDPLAN_LUPDATE),
                {QStringLiteral("-silent"), QStringLiteral("-no-obsolete"),
                 QStringLiteral("-locations"), QStringLiteral("none"),
                 QStringLiteral(SHARDPLAN_SOURCE_DIR "/gui"), QStringLiteral("-ts"), fresh});
  ASSERT_TRUE(lupdate.waitForFinished());
  ASSERT_EQ(lupdate.exitCode(), 0);
  QSet<QString> known;
  for (const Translation& t : read(file())) known.insert(t.context + QLatin1Char('|') + t.source);
  const std::vector<Translation> wanted = read(fresh);
  EXPECT_GT(wanted.size(), 150U);
  for (const Translation& t : wanted)
    EXPECT_TRUE(known.contains(t.context + QLatin1Char('|') + t.source))
        << t.context.toStdString() << ": " << t.source.toStdString();
}

INSTANTIATE_TEST_SUITE_P(Languages, Translations, testing::Values("ja", "ko"));

}  // namespace
}  // namespace shardplan::gui
