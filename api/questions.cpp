// Asks what the command line asks, by its own parts: the same options, defaults and messages.
#include "shardplan/questions.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "cli/estimate_question.h"
#include "cli/fit_question.h"
#include "cli/spoken_flags.h"
#include "cli/transcript.h"
#include "convert.h"
#include "json/given_texts.h"

namespace shardplan::api {
namespace {

/// One question as the command line's words, with the texts that stand for files.
struct Asked {
  std::vector<std::string> words;
  TextsByName texts;

  void add(const Document& document) {
    std::string name = document.word();
    if (document.has_text()) {
      for (int number = 2; texts.contains(name); ++number)
        name = fmt::format("{} {}>", document.word().substr(0, document.word().size() - 1), number);
      texts.emplace(name, document.content());
    }
    words.push_back(std::move(name));
  }
  void add(const Option& option) {
    words.push_back(fmt::format("--{}={}", option.name, option.value));
  }
};

/// Reads the words into a question, as a command of the command line does.
void parse(std::vector<std::string> words, CLI::App& command) {
  command.set_help_flag();
  words = cli::spoken_flags(words, command);
  std::reverse(words.begin(), words.end());  // CLI11 takes the last one first
  command.parse(std::move(words));
}

template <class Question>
cli::JobAnswer answered(const Asked& asked) {
  CLI::App command;
  Question question;
  question.add_to(command);
  parse(asked.words, command);
  return answer(question);
}

/// Calls `ask`, with its texts in the place of files and nothing told to the terminal; errors of
/// the library become public ones.
template <class Question>
std::pair<cli::JobAnswer, std::string> ask(Asked asked) try {
  const GivenTexts given(std::move(asked.texts));
  cli::Transcript transcript;
  cli::JobAnswer answer = answered<Question>(asked);
  return {std::move(answer), std::move(transcript.remarks)};
} catch (const InputError& e) {
  throw public_error(e.diagnostic());
} catch (const cli::UnknownFlag& e) {
  throw public_error(
      {.file = "<command line>", .key = e.flag, .message = "unknown option", .nearest = e.nearest});
} catch (const CLI::ParseError& e) {
  throw public_error({.file = "<command line>", .message = e.what()});
} catch (const OverflowError& e) {
  throw public_error({.message = fmt::format("the job is too large to compute: {}", e.what())});
}

}  // namespace

Document::Document(std::string word_or_path) : word_(std::move(word_or_path)) {}
Document::Document(const char* word_or_path) : word_(word_or_path) {}

Document Document::text(std::string content, const std::string& name) {
  Document document("<" + name + ">");
  document.content_ = std::move(content);
  document.has_text_ = true;
  return document;
}

Estimate estimate(const std::vector<Document>& job, const std::vector<Option>& options) {
  Asked asked;
  for (const Document& document : job) asked.add(document);
  for (const Option& option : options) asked.add(option);
  auto [answer, remarks] = ask<cli::EstimateQuestion>(std::move(asked));
  Estimate out = to_public(answer);
  out.remarks = std::move(remarks);
  return out;
}

Fit fit(const Document& model, const Document& cluster, const std::vector<Option>& options) {
  Asked asked;
  asked.add(model);
  asked.add(cluster);
  for (const Option& option : options) asked.add(option);
  auto [answer, remarks] = ask<cli::FitQuestion>(std::move(asked));
  Fit out{to_public(answer), to_public(*answer.fixes)};
  out.estimate.remarks = std::move(remarks);
  return out;
}

}  // namespace shardplan::api
