// Keys of a file by tables: what each becomes, and why the others change nothing. No key of a file
// goes by unseen: it is taken, ignored with a reason, warned of, refused, or listed as unknown.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

/// One key that a rule is asked about.
class Key {
 public:
  Key(const Document& document, std::string path, const Json& value, std::string_view field,
      Recipe& recipe);

  const Json& value() const { return value_; }
  const std::string& path() const { return path_; }
  const Document& document() const { return document_; }
  Recipe& recipe() const { return recipe_; }
  Origin origin() const;

  // The value as a type; another type is an error that names file and key. Numbers and truths may
  // be written as texts, as trainers' parsers take them.
  std::int64_t integer(std::int64_t least = 0) const;
  double number() const;
  bool flag() const;
  std::string text() const;
  std::vector<std::string> list() const;  ///< a list, or a text with commas

  /// Another key of the same file, or nullptr.
  const Json* other(std::string_view path) const {
    return document_.unset.contains(path) ? nullptr : value_below(document_.value, path);
  }
  bool other_is_true(std::string_view path) const;

  /// Sets the rule's own field, or another one.
  void take(Json value);
  void take(const std::string& pointer, Json value);
  /// What the value became, where it is no field of its own.
  void took(std::string field);
  void ignore(std::string reason);
  /// It changes memory or time by something that is not estimated.
  void warn(std::string reason);
  /// Sets a field to what takes more than what the file says, which has no field.
  void estimate_larger(const std::string& pointer, Json value);
  [[noreturn]] void refuse(std::string message, std::string expected,
                           std::string nearest = "") const;

  /// Whether the rule has said what became of it.
  bool said() const { return said_; }

 private:
  void note(Note::Kind kind, std::string field, std::string reason);

  const Document& document_;
  std::string path_;
  const Json& value_;
  std::string_view field_;
  Recipe& recipe_;
  bool said_ = false;
};

using ReadKey = void (*)(Key&);

struct KeyRule {
  std::string_view key;    ///< "training.local_batch_size"
  std::string_view field;  ///< a pointer into the job: "/workload/micro_batch"; "" where the rule
                           ///< decides
  ReadKey read;
};

// Rules for fields that have the key's value.
void as_integer(Key& key);
void as_flag(Key& key);
void as_number(Key& key);

/// Keys that change nothing that is estimated; "wandb_*" stands for all that begin so.
struct IgnoredKeys {
  std::string_view reason;
  std::vector<std::string_view> keys;
};

struct KeyTable {
  std::span<const KeyRule> rules;
  std::span<const IgnoredKeys> ignored;
};

/// Reads all keys of `document` by the first table that has them. An unknown one that is spelt
/// nearly like a key with a rule is refused; the others are noted as unknown.
void read_keys(const Document& document, std::initializer_list<const KeyTable*> tables,
               Recipe& recipe);

}  // namespace shardplan::importing
