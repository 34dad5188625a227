#include "import/python_program.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/ascii.h"

namespace shardplan::importing {
namespace {

constexpr std::size_t kMostCalls = 5'000;
constexpr int kDeepestCall = 100;

using Value = std::optional<Json>;

bool is_name_start(char c) {
  return is_letter(c) || c == '_';
}

/// Whole numbers alone: "micro_batch * 4", "batch // micro".
Value folded(const Value& a, std::string_view sign, const Value& b) {
  if (!a || !b || !a->is_number_integer() || !b->is_number_integer()) return std::nullopt;
  const auto x = a->get<std::int64_t>(), y = b->get<std::int64_t>();
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // no sum of two overflows
  if (std::abs(x) > kLargest || std::abs(y) > kLargest) return std::nullopt;
  if (sign == "*") return x * y;
  if (sign == "+") return x + y;
  if (sign == "-") return x - y;
  if (sign == "//" && y > 0 && x >= 0) return x / y;
  return std::nullopt;
}

/// One walk over the text. What is not understood is passed over, and its value is not known.
class Program {
 public:
  explicit Program(std::string_view text) : text_(text) {}

  std::vector<PythonCall> calls() {
    while (at_ < text_.size() && calls_.size() < kMostCalls) statement();
    return std::move(calls_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  void step() {
    if (peek() == '\n') ++line_;
    ++at_;
  }

  /// Spaces and comments, and within brackets ends of lines.
  void skip_space() {
    while (at_ < text_.size()) {
      const char c = peek();
      if (c == '#')
        while (at_ < text_.size() && peek() != '\n') ++at_;
      else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && depth_ > 0) ||
               (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')))
        c == '\\' ? (step(), step()) : step();
      else
        return;
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (is_name_start(peek()) || is_digit(peek())) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::size_t indent() const {
    const std::size_t begin = text_.rfind('\n', at_) + 1;
    return at_ - begin;
  }

  void statement() {
    depth_ = 0;
    skip_space();
    if (peek() == '\n' || peek() == ';') return step();
    if (starts("if False:")) return skip_block();
    if (!class_.empty() && indent() <= class_indent_) class_.clear();
    if (starts("class ")) {
      class_indent_ = indent();
      at_ += 6;
      class_ = name();
    }
    if (starts("def ")) return parameters();
    if (!assignment()) expression(0);
    while (at_ < text_.size() && peek() != '\n' && peek() != ';') {
      step();  // an operator, a colon, a closing bracket
      expression(0);
    }
  }

  void skip_block() {
    const std::size_t own = indent();
    do {
      while (at_ < text_.size() && peek() != '\n') step();
      while (at_ < text_.size() && (peek() == '\n' || peek() == ' ' || peek() == '\t')) step();
    } while (at_ < text_.size() && indent() > own);
  }

  /// NAME = value, NAME: type = value. Of several names nothing is known.
  bool assignment() {
    const std::size_t begin = at_;
    const std::string target = name();
    skip_space();
    if (!target.empty() && peek() == ':')
      while (at_ < text_.size() && peek() != '\n' && peek() != '=' && peek() != '#') ++at_;
    if (target.empty() || peek() != '=' || peek(1) == '=') {
      at_ = begin;
      return false;
    }
    step();
    set(target, expression(0));
    return true;
  }

  void set(const std::string& target, const Value& value) {
    if (!class_.empty()) {
      set_variable(class_ + "." + target, value);
      declare_argument(target, value);  // a field of a dataclass, which a parser fills
    }
    set_variable(target, value);
  }
  /// An argument of the program and its default. Of two with one name nothing is known.
  void declare_argument(const std::string& name, const Value& value) {
    const auto [argument, added] = arguments_.try_emplace(name, value);
    if (!added && argument->second != value) argument->second.reset();
  }
  void set_variable(const std::string& target, const Value& value) {
    if (value)
      variables_[target] = *value;
    else
      variables_.erase(target);
  }

  /// def NAME(a: int = 4, ...): what it runs with unless its caller says otherwise.
  void parameters() {
    while (at_ < text_.size() && peek() != '(' && peek() != '\n') ++at_;
    if (peek() != '(') return;
    step();
    depth_ = 1;
    while (at_ < text_.size() && peek() != ')') {
      skip_space();
      const std::string parameter = name();
      while (at_ < text_.size() && peek() != '=' && peek() != ',' && peek() != ')') step();
      if (peek() == '=') {
        step();
        set(parameter, expression(0));
      }
      if (peek() == ',') step();
      skip_space();
    }
    depth_ = 0;
    if (at_ < text_.size()) step();
  }

  /// Up to what ends a value: a comma, a closing bracket, a colon, the end of the line.
  Value expression(int deep) {
    Value value = primary(deep);
    for (skip_space(); at_ < text_.size(); skip_space()) {
      const char c = peek();
      if (c == ',' || c == ')' || c == ']' || c == '}' || c == ':' || c == '\n' || c == ';')
        return value;
      if (c == '=' && peek(1) != '=') return value;
      std::string sign(1, c);
      if (c == '*' || c == '/')
        while (peek(sign.size()) == c) sign += c;
      if (starts("if ") && value) {
        value = chosen(value, deep);
        continue;
      }
      if (is_name_start(c)) {  // else, for, and, in: only a run tells
        value.reset();
        primary(deep);
        continue;
      }
      at_ += sign.size() - 1;
      step();
      skip_space();
      const std::size_t before = at_;
      const Value other = primary(deep);
      value = at_ == before ? std::nullopt : folded(value, sign, other);
    }
    return value;
  }

  /// `6 if flag else 4`, where the flag is a known one.
  Value chosen(const Value& yes, int deep) {
    name();
    const Value flag = primary(deep + 1);
    skip_space();
    if (!flag || !flag->is_boolean() || !starts("else ")) return std::nullopt;
    name();
    const Value no = primary(deep + 1);
    skip_space();
    const bool ends =
        at_ == text_.size() || std::string_view(",)]}\n;").find(peek()) != std::string_view::npos;
    if (!ends) return std::nullopt;
    return flag->get<bool>() ? yes : no;
  }

  Value primary(int deep) {
    skip_space();
    const char c = peek();
    if (deep > kDeepestCall) {
      step();
      return std::nullopt;
    }
    if (is_digit(c) || (c == '-' && is_digit(peek(1)))) return number();
    if (c == '[' || c == '(' || c == '{') return bracket(deep);
    if (c == '"' || c == '\'') return strings(false);
    if (!is_name_start(c)) return std::nullopt;
    const std::string word = dotted();
    if ((peek() == '"' || peek() == '\'') && word.size() <= 2)
      return strings(word.find_first_of("fF") != word.npos);
    if (word == "not") {
      const Value value = primary(deep + 1);
      return value && value->is_boolean() ? Value(!value->get<bool>()) : std::nullopt;
    }
    return trailing(named(word), word, deep);
  }

  /// What follows a name: a call, a key, an attribute.
  Value trailing(Value value, std::string word, int deep) {
    while (true) {
      if (peek() == '(') {
        value = call(word, deep);
      } else if (peek() == '[') {
        const Value key = bracket(deep);
        const bool found = value && value->is_object() && key && key->size() == 1 &&
                           key->front().is_string() && value->contains(key->front());
        value = found ? Value((*value)[key->front().get<std::string>()]) : std::nullopt;
      } else if (peek() == '.' && is_name_start(peek(1))) {
        step();
        word = dotted();
        value.reset();
      } else {
        return value;
      }
    }
  }

  std::string dotted() {
    std::string word = name();
    while (peek() == '.' && is_name_start(peek(1))) {
      ++at_;
      word += "." + name();
    }
    return word;
  }

  Value named(const std::string& word) const {
    if (word == "True") return true;
    if (word == "False") return false;
    if (word == "None") return Json();
    if (word.starts_with("torch.") || word.starts_with("jnp.")) return word;
    const auto found = variables_.find(word);
    return found == variables_.end() ? argument_of(word) : Value(found->second);
  }

  /// args.batch, script_args.batch: what the program runs with where its command says nothing.
  Value argument_of(std::string_view word) const {
    const std::size_t point = word.find('.');
    if (point == word.npos) return std::nullopt;
    const std::string_view owner = word.substr(0, point);
    if (!owner.ends_with("args") && !owner.ends_with("arguments")) return std::nullopt;
    const auto found = arguments_.find(word.substr(point + 1));
    return found == arguments_.end() ? Value() : found->second;
  }

  Value number() {
    const std::size_t begin = at_;
    ++at_;
    while (is_digit(peek()) || is_letter(peek()) || peek() == '.' || peek() == '_' ||
           ((peek() == '-' || peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))
      ++at_;
    std::string digits(text_.substr(begin, at_ - begin));
    std::erase(digits, '_');
    const Json parsed = Json::parse(digits, nullptr, false);
    if (parsed.is_number()) return parsed;
    char* end = nullptr;  // "1e-4", "2.", ".5"
    const double value = std::strtod(digits.c_str(), &end);
    return *end == '\0' ? Value(value) : std::nullopt;
  }

  /// One or more texts behind each other; `computed`: a part is put in when the program runs.
  Value strings(bool computed) {
    std::string whole;
    while (peek() == '"' || peek() == '\'') {
      const char quote = peek();
      const bool longer = peek(1) == quote && peek(2) == quote;
      const std::string end(longer ? 3 : 1, quote);
      at_ += end.size();
      while (at_ < text_.size() && !starts(end)) {
        if (peek() == '\n' && !longer) break;
        if (peek() == '\\') step();
        whole += peek();
        step();
      }
      at_ = std::min(at_ + end.size(), text_.size());
      skip_space();
    }
    return computed && whole.find('{') != whole.npos ? Value() : Value(whole);
  }

  /// A list, a tuple, a dictionary, or a value between brackets.
  Value bracket(int deep) {
    const char open = peek();
    step();
    ++depth_;
    Json list = Json::array(), pairs = Json::object();
    bool known = true, commas = false;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      if (peek() == ')' || peek() == ']' || peek() == '}') break;
      const std::size_t before = at_;
      const Value first = expression(deep + 1);
      if (peek() == ':' && open == '{') {
        step();
        const Value second = expression(deep + 1);
        if (first && first->is_string() && second)
          pairs[first->get<std::string>()] = *second;
        else
          known = false;
      } else if (first) {
        list.push_back(*first);
      } else {
        known = false;
      }
      commas = commas || peek() == ',';
      if (peek() == ',' || at_ == before) step();
    }
    if (at_ < text_.size()) step();
    depth_ = std::max(depth_ - 1, 0);
    if (!known) return std::nullopt;
    if (open == '{') return pairs;
    return open == '(' && !commas && list.size() == 1 ? Value(list.front()) : Value(list);
  }

  /// Of what is called only these say what they return: whether a GPU has bf16, a number of a
  /// text, the default of a field or of a variable of the environment.
  Value result_of(const PythonCall& made) const {
    const std::string_view called = made.name;
    if (called.ends_with("is_bfloat16_supported") || called.ends_with("is_bf16_supported"))
      return true;
    const auto& given = made.arguments;
    if (called == "field" || called == "dataclasses.field") {
      const auto found = std::ranges::find(given, "default", &PythonCall::Argument::name);
      return found == given.end() ? Value() : found->value;
    }
    if (called == "int" || called == "float")
      return given.size() == 1 ? number_of(given[0]) : Value();
    const bool environment =
        called == "os.getenv" || called == "os.environ.get" || called == "getenv";
    return environment && given.size() == 2 ? given[1].value : Value();
  }

  static Value number_of(const PythonCall::Argument& argument) {
    const Value& value = argument.value;
    if (!value || value->is_number()) return value;
    if (!value->is_string()) return std::nullopt;
    const Json parsed = Json::parse(value->get_ref<const std::string&>(), nullptr, false);
    return parsed.is_number() ? Value(parsed) : std::nullopt;
  }

  /// parser.add_argument("--batch", "-b", type=int, default=4)
  void read_declaration(const PythonCall& made) {
    if (!made.name.ends_with(".add_argument")) return;
    Value otherwise;
    std::string name;
    for (const PythonCall::Argument& argument : made.arguments) {
      if (argument.name == "default") otherwise = argument.value;
      if (argument.name == "dest" && argument.value && argument.value->is_string())
        name = argument.value->get<std::string>();
      if (!argument.name.empty() || !name.empty() || !argument.value) continue;
      const std::string spelt =
          argument.value->is_string() ? argument.value->get<std::string>() : "";
      if (spelt.starts_with("--")) name = spelt.substr(2);
    }
    std::ranges::replace(name, '-', '_');
    if (!name.empty()) declare_argument(name, otherwise);
  }

  Value call(const std::string& called, int deep) {
    PythonCall made{.name = called, .line = line_, .arguments = {}};
    step();
    ++depth_;
    for (skip_space(); at_ < text_.size() && peek() != ')'; skip_space()) {
      const std::size_t before = at_;
      const bool spread = peek() == '*';
      while (peek() == '*') step();
      add_argument(made, spread, deep);
      if (peek() == ',' || at_ == before) step();
    }
    if (at_ < text_.size()) step();
    depth_ = std::max(depth_ - 1, 0);
    read_declaration(made);
    Value result = result_of(made);
    calls_.push_back(std::move(made));
    return result;
  }

  void add_argument(PythonCall& made, bool spread, int deep) {
    const std::size_t begin = at_;
    const int line = line_;
    std::string keyword = name();
    skip_space();
    if (keyword.empty() || peek() != '=' || peek(1) == '=') {
      keyword.clear();
      at_ = begin;
      line_ = line;
    } else {
      step();
    }
    const Value value = expression(deep + 1);
    if (spread && value && value->is_object())
      for (const auto& [key, one] : value->items()) made.arguments.push_back({key, one, line});
    else if (!spread)
      made.arguments.push_back({keyword, value, line});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;  ///< of brackets
  std::string class_;
  std::size_t class_indent_ = 0;
  std::map<std::string, Json, std::less<>> variables_;
  std::map<std::string, Value, std::less<>> arguments_;  ///< of the command that starts it
  std::vector<PythonCall> calls_;
};

}  // namespace

std::vector<PythonCall> python_calls(std::string_view text) {
  return Program(text).calls();
}

}  // namespace shardplan::importing
