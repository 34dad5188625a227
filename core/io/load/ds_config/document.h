// The text of a ds_config, read as the program reads it that it is for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frameworks/deepspeed/auto_resolver.h"
#include "json/document.h"

namespace shardplan {

/// What another reader than the file's own would say of its text.
enum class DsText : std::uint8_t {
  plain,     ///< JSON, and the same to every reader
  hjson,     ///< comments, stray commas, no quotes: DeepSpeed alone takes them
  repeated,  ///< a key appears twice: DeepSpeed refuses it, Python's json takes the last
};

struct DsDocument {
  Json json;
  DsText text = DsText::plain;
};

/// Whether "auto" stands anywhere in it: then HF Trainer or accelerate fill the file in.
bool has_auto(const Json& document);

/// The program that fills in "auto" where nobody says which: HF Trainer where there is one.
AutoResolver usual_resolver(const Json& document);

/// DeepSpeed reads its file with hjson and refuses repeated keys (runtime/config.py
/// DeepSpeedConfig); HF Trainer and accelerate read the same file with Python's json (accelerate:
/// utils/deepspeed.py HfDeepSpeedConfig). `said`: who fills in "auto", and so who reads; else the
/// file tells: what has an "auto" is read by HF Trainer, but what only hjson can read is taken all
/// the same, and `text` says so. `file` names it in errors. Throws InputError for what the program
/// would not read.
DsDocument read_ds_document(std::string_view text, const std::string& file,
                            std::optional<AutoResolver> said = std::nullopt);

}  // namespace shardplan
