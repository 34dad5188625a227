#include "embedded/json.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "embedded/files.h"

namespace shardplan {
namespace {

/// Reads what Json::to_msgpack writes of JSON (the MessagePack specification, github.com/msgpack).
/// The library's own reader looks each key up among those before it, because bytes from elsewhere
/// may have one twice, and copies strings byte by byte: five times the instructions of `fit`'s
/// data.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  Json value() {
    const auto tag = number<std::uint8_t>();
    if (tag < 0x80) return tag;
    if (tag < 0x90) return object(tag & 0x0fu);
    if (tag < 0xa0) return array(tag & 0x0fu);
    if (tag < 0xc0) return text(tag & 0x1fu);
    if (tag >= 0xe0) return static_cast<std::int8_t>(tag);
    switch (tag) {
      case 0xc0:
        return nullptr;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return std::bit_cast<float>(number<std::uint32_t>());
      case 0xcb:
        return std::bit_cast<double>(number<std::uint64_t>());
      case 0xcc:
        return number<std::uint8_t>();
      case 0xcd:
        return number<std::uint16_t>();
      case 0xce:
        return number<std::uint32_t>();
      case 0xcf:
        return number<std::uint64_t>();
      case 0xd0:
        return static_cast<std::int8_t>(number<std::uint8_t>());
      case 0xd1:
        return static_cast<std::int16_t>(number<std::uint16_t>());
      case 0xd2:
        return static_cast<std::int32_t>(number<std::uint32_t>());
      case 0xd3:
        return static_cast<std::int64_t>(number<std::uint64_t>());
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text(text_size(tag));
      case 0xdc:
        return array(number<std::uint16_t>());
      case 0xdd:
        return array(number<std::uint32_t>());
      case 0xde:
        return object(number<std::uint16_t>());
      case 0xdf:
        return object(number<std::uint32_t>());
      default:
        throw std::logic_error("embedded JSON: no value of MessagePack");
    }
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) throw std::logic_error("embedded JSON ends within a value");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  /// The highest byte first.
  template <std::unsigned_integral T>
  T number() {
    T n = 0;
    for (const char byte : take(sizeof(T)))
      n = static_cast<T>(static_cast<std::uint64_t>(n) << 8 | static_cast<unsigned char>(byte));
    return n;
  }

  std::size_t text_size(std::uint8_t tag) {
    if (tag == 0xd9) return number<std::uint8_t>();
    return tag == 0xda ? number<std::uint16_t>() : number<std::uint32_t>();
  }

  std::string text(std::size_t size) { return std::string(take(size)); }

  std::string key() {
    const auto tag = number<std::uint8_t>();
    return text(tag < 0xc0 ? tag & 0x1fu : text_size(tag));
  }

  Json array(std::size_t size) {
    Json::array_t values;
    values.reserve(size);
    for (std::size_t i = 0; i < size; ++i) values.push_back(value());
    return values;
  }

  Json object(std::size_t size) {
    Json::object_t members;
    members.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      std::string name = key();
      static_cast<Members&>(members).emplace_back(std::move(name), value());
    }
    return members;
  }

  /// An object as a list of its members: what is written has each key once.
  using Members = Json::object_t::Container;

  std::string_view left_;
};

}  // namespace

Json embedded_json(std::string_view path) {
  return unpacked(embedded_file(path));
}

Json unpacked(std::string_view bytes) {
  return Unpacker(bytes).value();
}

}  // namespace shardplan
