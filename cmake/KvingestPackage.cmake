# What another project gets of an installed copy: headers, static libraries, and a package for find_package(kvingest).
# The client for HTTP is a component of its own, so that who embeds a store needs no libcurl.
include(CMakePackageConfigHelpers)

set(store_libraries
  base codec index store_names storage engine_null engine_hash engine_map engine_file engine_mmap engine_lmdb
  engine_rocksdb)
set(http_libraries record http)
foreach(set store http)
  foreach(library IN LISTS ${set}_libraries)
    set_target_properties(kvingest_${library} PROPERTIES EXPORT_NAME ${library})
    install(TARGETS kvingest_${library} EXPORT kvingest-${set}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endforeach()
endforeach()
# By the name of what it gives: stores.
set_target_properties(kvingest_storage PROPERTIES EXPORT_NAME store)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvingest)
foreach(set store http)
  install(EXPORT kvingest-${set} NAMESPACE kvingest:: DESTINATION ${package_dir} COMPONENT development)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kvingest DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.hpp")

set(KVINGEST_HAS_LMDB ${lmdb_FOUND})
set(KVINGEST_HAS_ROCKSDB ${rocksdb_FOUND})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kvingest-config.cmake.in
  ${PROJECT_BINARY_DIR}/kvingest-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvingest-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvingest-config.cmake ${PROJECT_BINARY_DIR}/kvingest-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# ---- Debian packages ------------------------------------------------------------------------------------------------

# cpack takes what was built; it builds nothing.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
foreach(pair programs=kvingest development=kvingest-dev)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright
          COMPONENT ${component})
endforeach()
install(FILES README.md CHANGELOG.md docs/security.md net/PROTOCOL.md storage/FORMAT.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kvingest COMPONENT programs)
# What a package configures is below /etc wherever its programs are.
install(CODE "if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    file(INSTALL \"${PROJECT_SOURCE_DIR}/packaging/default\" DESTINATION \"/etc/default\" RENAME kvingest)
  endif()"
  COMPONENT programs)

set(CPACK_PACKAGE_NAME kvingest)
set(CPACK_PACKAGE_CONTACT "kvingest maintainers <kvingest@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # What is installed learns the prefix it will run under.
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME kvingest)
set(CPACK_DEBIAN_PROGRAMS_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "init-system-helpers, tzdata")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS gnuplot-nox)
foreach(file postinst prerm postrm conffiles)
  list(APPEND CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/${file})
endforeach()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME kvingest-dev)
set(CPACK_DEBIAN_DEVELOPMENT_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libabsl-dev, libexpected-dev, libfmt-dev, liblmdb-dev, librocksdb-dev, libspdlog-dev, libxxhash-dev, pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libcurl4-openssl-dev, libssl-dev, zlib1g-dev")
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "Text feeds over TCP into an embedded key-value store, durably, and the \
programs that read, fetch, feed and measure.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and static libraries of kvingest: stores behind one interface, \
codecs, an HTTP client.")
include(CPack)
