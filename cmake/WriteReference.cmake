# Writes the man page of PROGRAM and its completion for bash and zsh into DIR, as the program itself prints them.
#   cmake -DPROGRAM=build/bin/kvq -DDIR=build/reference -P WriteReference.cmake
get_filename_component(name "${PROGRAM}" NAME)
file(MAKE_DIRECTORY "${DIR}")
foreach(form IN ITEMS "man;${name}.1" "bash;${name}" "zsh;_${name}")
  list(GET form 0 word)
  list(GET form 1 file)
  execute_process(COMMAND "${PROGRAM}" --help-as ${word} OUTPUT_FILE "${DIR}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
