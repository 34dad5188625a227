// Packs the data files for the program: shardplan_pack SOURCE BYTES ROOT FILE...
// Writes BYTES, all files below ROOT one behind the other, JSON as MessagePack; and SOURCE, the C++
// tables of embedded/files.h, with a row for each model of models/*.json: a program that looks for
// one reads one. Runs while shardplan is built.
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

class Pack {
 public:
  void add_file(const std::string& root, const std::string& path) {
    const std::string text = read(root + "/" + path);
    if (!path.ends_with(".json")) {
      files_ += "      {" + quoted(path) + ", " + add(text) + "},\n";
      return;
    }
    const Json json = Json::parse(text);
    files_ += "      {" + quoted(path) + ", " + add_packed(json) + "},\n";
    if (path.starts_with("models/"))
      for (const Json& model : json.at("models")) add_model(path, model);
  }

  void save(const std::string& source, const std::string& bytes) const {
    write(bytes, bytes_);
    write(source, std::string("// Made by shardplan_pack from the files below data/.\n") +
                      "#include \"embedded/files.h\"\n\n" +
                      // .incbin is instant at any size.
                      "asm(\".section .rodata\\nshardplan_data:\\n.incbin \\\"" + bytes +
                      "\\\"\\n.previous\\n\");\n" +
                      "extern \"C\" const char shardplan_data[];\n\n" + "namespace shardplan {\n" +
                      "std::span<const EmbeddedFile> embedded_files() {\n" +
                      "  static const EmbeddedFile kFiles[] = {\n" + files_ + "  };\n" +
                      "  return kFiles;\n}\n\n" +
                      "std::span<const EmbeddedModelName> embedded_model_names() {\n" +
                      "  static const EmbeddedModelName kNames[] = {\n" + names_ + "  };\n" +
                      "  return kNames;\n}\n}  // namespace shardplan\n");
  }

 private:
  static std::string quoted(const std::string& text) { return Json(text).dump(); }

  /// Appends `bytes`; the C++ expression for them.
  std::string add(std::string_view bytes) {
    const std::string place = std::to_string(bytes_.size());
    bytes_ += bytes;
    return "{shardplan_data + " + place + ", " + std::to_string(bytes.size()) + "}";
  }

  std::string add_packed(const Json& json) {
    const std::vector<std::uint8_t> packed = Json::to_msgpack(json);
    return add({reinterpret_cast<const char*>(packed.data()), packed.size()});
  }

  void add_model(const std::string& path, const Json& model) {
    const std::string row = ", " + quoted(path) + ", " + add_packed(model);
    names_ += "      {" + quoted(model.at("name")) + row + ", false},\n";
    for (const Json& alias : model.at("aliases"))
      names_ += "      {" + quoted(alias) + row + ", true},\n";
  }

  std::string bytes_, files_, names_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    Pack pack;
    for (std::size_t i = 3; i < arguments.size(); ++i) pack.add_file(arguments.at(2), arguments[i]);
    pack.save(arguments.at(0), arguments.at(1));
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "shardplan_pack: " << e.what() << '\n';
    return 1;
  }
}
