// The module shardplan._core: one question of the command line, asked within the process. What
// answers look like to Python is the business of the package's Python files.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/diagnostic.h"
#include "cli/program.h"
#include "cli/transcript.h"
#include "json/document.h"
#include "json/given_texts.h"

namespace nb = nanobind;

namespace shardplan {
namespace {

/// What a question came to. `error` is "" or JSON: the message, and the parts of a diagnostic.
struct Answer {
  int exit_code = 0;
  std::string text, remarks, error;
};

std::string error_of(const Diagnostic& d) {
  return Json{{"message", to_string(d)},     {"file", d.file},       {"key", d.key},
              {"expected", d.expected.text}, {"nearest", d.nearest}, {"line", d.position.line},
              {"column", d.position.column}}
      .dump();
}

/// The exit codes and messages of the program.
Answer ask(const std::vector<std::string>& arguments, TextsByName texts) {
  const nb::gil_scoped_release others_run;
  const GivenTexts given(std::move(texts));
  cli::Transcript transcript;
  Answer answer;
  const auto fail = [&](cli::Exit exit, std::string error) {
    answer.exit_code = static_cast<int>(exit);
    answer.error = std::move(error);
  };
  try {
    answer.exit_code = static_cast<int>(cli::run_program(arguments));
  } catch (const cli::UsageError& e) {
    fail(cli::Exit::usage, error_of({.message = e.what()}));
  } catch (const InputError& e) {
    fail(cli::Exit::bad_input, error_of(e.diagnostic()));
  } catch (const cli::OutputError& e) {
    fail(cli::Exit::internal, error_of({.message = e.what()}));
  } catch (const OverflowError& e) {
    fail(cli::Exit::bad_input,
         error_of({.message = fmt::format("the job is too large to compute: {}", e.what())}));
  }
  answer.text = std::move(transcript.answer);
  answer.remarks = std::move(transcript.remarks);
  return answer;
}

nb::object object_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      nb::dict object;
      for (const auto& [key, value] : json.items())
        object[nb::str(key.data(), key.size())] = object_of(value);
      return object;
    }
    case Json::value_t::array: {
      nb::list list;
      for (const Json& value : json) list.append(object_of(value));
      return list;
    }
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      return nb::str(text.data(), text.size());
    }
    case Json::value_t::boolean:
      return nb::bool_(json.get<bool>());
    case Json::value_t::number_integer:
      return nb::int_(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return nb::int_(json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return nb::float_(json.get<double>());
    default:
      return nb::none();
  }
}

/// Python's own module for this takes as long to import as the rest of the package.
nb::object objects_of(std::string_view text) {
  return object_of(Json::parse(text));
}

}  // namespace
}  // namespace shardplan

NB_MODULE(_core, module) {
  using shardplan::Answer;
  module.attr("__version__") = SHARDPLAN_VERSION;
  module.attr("build_type") = SHARDPLAN_BUILD_TYPE;
  nb::class_<Answer>(module, "Answer", "What a question came to.")
      .def_ro("exit_code", &Answer::exit_code, "as the program's")
      .def_ro("text", &Answer::text, "what the program prints to standard output")
      .def_ro("remarks", &Answer::remarks, "what it prints to standard error")
      .def_ro("error", &Answer::error, "\"\", or JSON with the message and the place of an error");
  module.def("objects_of", &shardplan::objects_of, nb::arg("text"),
             "What the program writes, as Python's own objects.");
  module.def("ask", &shardplan::ask, nb::arg("arguments"), nb::arg("texts"),
             "Asks what the program is asked with `arguments`; `texts` stand for files of that "
             "name. Other threads run meanwhile.");
}
