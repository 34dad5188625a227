# Writes OUTPUT: a C++ file whose table holds every file of FILES (comma-separated, below ROOT).
# The bytes come in through the assembler's .incbin, which is instant at any size.
string(REPLACE "," ";" FILES "${FILES}")
set(blocks "")
set(declarations "")
set(rows "")
set(index 0)
foreach(file IN LISTS FILES)
  string(APPEND blocks
    "asm(\".section .rodata\\nshardplan_file_${index}:\\n.incbin \\\"${ROOT}/${file}\\\"\\n\"\n"
    "    \"shardplan_file_${index}_end:\\n.byte 0\\n.previous\\n\");\n")
  string(APPEND declarations
    "extern const char shardplan_file_${index}[];\nextern const char shardplan_file_${index}_end[];\n")
  string(APPEND rows
    "      {\"${file}\", {shardplan_file_${index}, static_cast<std::size_t>(shardplan_file_${index}_end - shardplan_file_${index})}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT}
"// Generated from the files under data/.
#include \"embedded/files.h\"

${blocks}
extern \"C\" {
${declarations}}

namespace shardplan {
std::span<const EmbeddedFile> embedded_files() {
  static const EmbeddedFile kFiles[] = {
${rows}  };
  return kFiles;
}
}  // namespace shardplan
")
