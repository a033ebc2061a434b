# Writes OUTPUT, a source file that holds the text of every preset in SOURCES.
#   cmake -DOUTPUT=file.cpp "-DSOURCES=a.toml;b.toml" -P EmbedPresets.cmake
set(text "// Made by cmake/EmbedPresets.cmake from http/sources.\n#include \"http/load/preset.hpp\"\n\n")
string(APPEND text "namespace kvingest::fetch {\nnamespace {\n\nconstexpr BuiltinPreset kPresets[] = {\n")
foreach(source IN LISTS SOURCES)
  get_filename_component(name "${source}" NAME_WE)
  file(READ "${source}" content)
  string(APPEND text "    {\"${name}\", R\"kvpreset(${content})kvpreset\"},\n")
endforeach()
string(APPEND text "};\n\n}  // namespace\n\nstd::span<const BuiltinPreset> builtin_presets() noexcept {\n")
string(APPEND text "  return kPresets;\n}\n\n}  // namespace kvingest::fetch\n")
file(WRITE "${OUTPUT}" "${text}")
