# Writes OUTPUT: a C++ file whose table holds every file of FILES (comma-separated, below ROOT), and
# one of the models that models/*.json name: a program that looks for one parses one file.
# The bytes come in through the assembler's .incbin, which is instant at any size.
string(REPLACE "," ";" FILES "${FILES}")
set(blocks "")
set(declarations "")
set(rows "")
set(names "")
set(index 0)

# Adds a row for each model of a family's file, and one for each of its other names.
function(add_names file)
  file(READ "${ROOT}/${file}" text)
  string(JSON models LENGTH "${text}" models)
  math(EXPR last "${models} - 1")
  set(found "${names}")
  foreach(place RANGE ${last})
    string(JSON model GET "${text}" models ${place})
    string(JSON name GET "${model}" name)
    string(APPEND found "      {\"${name}\", \"${file}\", ${place}, false},\n")
    string(JSON aliases LENGTH "${model}" aliases)
    set(alias 0)
    while(alias LESS aliases)
      string(JSON name GET "${model}" aliases ${alias})
      string(APPEND found "      {\"${name}\", \"${file}\", ${place}, true},\n")
      math(EXPR alias "${alias} + 1")
    endwhile()
  endforeach()
  set(names "${found}" PARENT_SCOPE)
endfunction()

foreach(file IN LISTS FILES)
  if(file MATCHES "^models/")
    add_names("${file}")
  endif()
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

std::span<const EmbeddedModelName> embedded_model_names() {
  static const EmbeddedModelName kNames[] = {
${names}  };
  return kNames;
}
}  // namespace shardplan
")
