# Functions that every folder uses, so that all targets get the same warnings, sanitizers and include paths.

# kvingest_setup(TARGET): warnings, sanitizers, include paths.
function(kvingest_setup target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                                           -Woverloaded-virtual -Wno-missing-field-initializers)
  if(KVINGEST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(KVINGEST_FUZZ)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
  if(KVINGEST_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${KVINGEST_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${KVINGEST_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # What the sanitizers insert confuses this warning, in Catch2 for one.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()

# kvingest_library(NAME SOURCES... [LINK LIBRARIES...] [PRIVATE_LINK LIBRARIES...]): a static library kvingest_NAME.
function(kvingest_library name)
  cmake_parse_arguments(ARG "" "" "LINK;PRIVATE_LINK" ${ARGN})
  add_library(kvingest_${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  kvingest_setup(kvingest_${name})
  target_link_libraries(kvingest_${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# kvingest_program(NAME SOURCES... [LINK LIBRARIES...]): an installed program, with its man page and completions.
function(kvingest_program name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  kvingest_setup(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  set(reference ${PROJECT_BINARY_DIR}/reference)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DDIR=${reference}
            -P ${PROJECT_SOURCE_DIR}/cmake/WriteReference.cmake
    VERBATIM)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  install(FILES ${reference}/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
  install(FILES ${reference}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT programs)
  # Debian's zsh looks for what packages bring in a folder of its own.
  install(CODE "set(zsh_folder site-functions)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(zsh_folder vendor-completions)
    endif()
    file(INSTALL \"${reference}/_${name}\"
         DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${zsh_folder}\")"
    COMPONENT programs)
endfunction()
