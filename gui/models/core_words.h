// Core's and planner's words in the language of the windows: the store of all words. Their
// numbers are taken over as they are.
#pragma once

#include <QString>
#include <string_view>

#include "base/said.h"
#include "base/source.h"
#include "load/ds_config/rule.h"
#include "report/report.h"
#include "words/store.h"

namespace shardplan::gui {

/// "en", "ja" or "ko": of QLocale's default, "en" for any other.
QString language();

/// A sentence of core or planner by its phrase, or as it is where there is none like it.
QString words(std::string_view english);
/// A remark on a job's cluster or model, which answers list behind "cluster: " or "model: " and
/// others without.
QString note_words(std::string_view note);
/// A message of the catalogue: report/words.h makes them of core's enumerations.
QString words(const report::Text& text);
/// What stands in a table or in a message.
QString cell_words(const report::Cell& cell);
QString words(Source source);
/// What a rule or a loader says, by the pattern that it was made of.
QString said(const Said& sentence);
/// What a rule of the linter is about, in a few words.
QString title_of(const Rule& rule);
/// What happens where a file breaks the rule, and why that is bad.
QString explanation_of(const Rule& rule);
/// What to do about a finding of the rule.
QString advice_of(const Rule& rule);

/// All words in the language of the windows.
const WordStore& word_store();

}  // namespace shardplan::gui
