#include "json/python_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace shardplan {
namespace {

/// A word that JSON lacks, and the string of the same length that stands for it while nlohmann/json
/// reads: places in errors stay right. No text that has the mark in it is touched.
struct PythonNumber {
  std::string_view word;
  std::string_view stand_in;  ///< with its quotes
  double value;
};

constexpr char kMark = '\x7f';
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kNumbers{
    PythonNumber{"-Infinity", "\"\x7f-inf-\x7f\"", -kInfinity},
    PythonNumber{"Infinity", "\"\x7f+inf\x7f\"", kInfinity},
    PythonNumber{"NaN", "\"\x7f\"", std::numeric_limits<double>::quiet_NaN()},
};

/// `text` with the stand-ins in place of the words outside strings.
std::string with_stand_ins(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    const PythonNumber* found = nullptr;
    for (const PythonNumber& number : kNumbers)
      if (!quoted && found == nullptr && text.substr(at).starts_with(number.word)) found = &number;
    if (found != nullptr) {
      out += found->stand_in;
      at += found->word.size();
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    if (quoted && text[at] == '\\' && at + 1 < text.size()) out += text[at++];
    out += text[at++];
  }
  return out;
}

void put_numbers_back(Json& value) {
  if (value.is_structured()) {
    for (Json& element : value) put_numbers_back(element);
  } else if (value.is_string()) {
    const std::string quoted = '"' + value.get_ref<const std::string&>() + '"';
    for (const PythonNumber& number : kNumbers)
      if (quoted == number.stand_in) value = number.value;
  }
}

/// Every number that JSON lacks becomes its stand-in.
Json without_python_numbers(Json value) {
  if (value.is_structured()) {
    for (Json& element : value) element = without_python_numbers(std::move(element));
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double x = value.get<double>();
    for (const PythonNumber& number : kNumbers)
      if (x == number.value || (std::isnan(x) && std::isnan(number.value)))
        value = number.stand_in.substr(1, number.stand_in.size() - 2);
  }
  return value;
}

}  // namespace

Json parse_python_json(std::string_view text, const std::string& file) {
  const auto parse = [&](std::string_view what) {
    return parse_json(what, file, JsonComments::refused, RepeatedKeys::last_counts);
  };
  const bool plain =
      text.find("Infinity") == std::string_view::npos && text.find("NaN") == std::string_view::npos;
  if (plain || text.find(kMark) != std::string_view::npos) return parse(text);
  Json document = parse(with_stand_ins(text));
  put_numbers_back(document);
  return document;
}

std::string dump_python_json(const Json& document) {
  std::string text = without_python_numbers(document).dump(2);
  for (const PythonNumber& number : kNumbers)
    for (std::size_t at = text.find(number.stand_in); at != std::string::npos;
         at = text.find(number.stand_in, at))
      text.replace(at, number.stand_in.size(), number.word);
  return text;
}

}  // namespace shardplan
