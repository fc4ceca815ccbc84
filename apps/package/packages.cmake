# Packages by cpack: engram (the program, libengram.so and their modules), libengram-dev (headers, CMake, pkg-config,
# examples), engram-mpi (the module that needs MPI) where that was found, and all in one archive. The preset `package`
# has a portable build with the library, for /usr.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME engram)
set(CPACK_PACKAGE_VENDOR "The Engram authors")
set(CPACK_PACKAGE_CONTACT "The Engram authors <engram@example.org>" CACHE STRING "who maintains the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "language models with memory")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME engram-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL program library development)
if(TARGET engram_mpi)
  list(APPEND CPACK_COMPONENTS_ALL processes)
endif()
if(NOT ENGRAM_LIBRARY)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL development)
endif()
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# A package is for the release of Debian that it was built on, whose libraries have names of their own.
find_program(DPKG_DEB dpkg-deb)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
set(revision 1)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release lines REGEX "^(ID|VERSION_ID)=")
  string(REGEX REPLACE ".*;?VERSION_ID=\"?([0-9]+).*" "\\1" release "${lines}")
  if(lines MATCHES "(^|;)ID=\"?debian\"?" AND release MATCHES "^[0-9]+$")
    set(revision "1~deb${release}")
  endif()
endif()
set(ENGRAM_PACKAGE_REVISION ${revision} CACHE STRING "what follows the version of a Debian package")
set(package_version ${PROJECT_VERSION}-${ENGRAM_PACKAGE_REVISION})

# The newest entry of CHANGELOG.md is this version's, with its date.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
file(STRINGS ${PROJECT_SOURCE_DIR}/CHANGELOG.md heading REGEX "^## " LIMIT_COUNT 1)
if(NOT heading MATCHES "^## ([0-9.]+) \\(([0-9-]+)\\)$" OR NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "CHANGELOG.md must begin with '## ${PROJECT_VERSION} (YEAR-MONTH-DAY)', got '${heading}'")
endif()
set(day ${CMAKE_MATCH_2})
if(GZIP)
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/doc)
  file(MAKE_DIRECTORY ${pages})
  configure_file(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${pages}/changelog COPYONLY)
  execute_process(COMMAND date -u -R -d ${day} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  configure_file(changelog.Debian.in ${pages}/changelog.Debian @ONLY)
  execute_process(COMMAND ${GZIP} -9nf ${pages}/changelog ${pages}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  foreach(documented "program ${CMAKE_INSTALL_DOCDIR}" "development ${CMAKE_INSTALL_DATADIR}/doc/libengram-dev"
          "processes ${CMAKE_INSTALL_DATADIR}/doc/engram-mpi")
    separate_arguments(documented UNIX_COMMAND ${documented})
    list(GET documented 0 component)
    list(GET documented 1 folder)
    if(component IN_LIST CPACK_COMPONENTS_ALL)
      install(FILES ${pages}/changelog.gz ${CMAKE_CURRENT_SOURCE_DIR}/copyright DESTINATION ${folder}
              COMPONENT ${component})
      if(DPKG_DEB)
        install(FILES ${pages}/changelog.Debian.gz DESTINATION ${folder} COMPONENT ${component})
      endif()
    endif()
  endforeach()
endif()

if(DPKG_DEB AND DPKG_SHLIBDEPS)
  list(PREPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${ENGRAM_PACKAGE_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_COMPONENT_PROGRAM_GROUP engram)
set(CPACK_COMPONENT_LIBRARY_GROUP engram)
set(CPACK_DEBIAN_ENGRAM_PACKAGE_NAME engram)
set(CPACK_DEBIAN_ENGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ENGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENGRAM_PACKAGE_GENERATE_SHLIBS ${ENGRAM_LIBRARY})
# Before 1.0 a minor version may change what a program was compiled with; its soname says so.
set(CPACK_DEBIAN_ENGRAM_PACKAGE_GENERATE_SHLIBS_POLICY >=)
set(CPACK_DEBIAN_ENGRAM_PACKAGE_SUGGESTS engram-mpi)
set(CPACK_DEBIAN_ENGRAM_DESCRIPTION "language models with memory
 Trains, evaluates and studies language models with memory on ordinary CPUs:
 all-attention networks with adaptive spans, Transformer-XL, product-key
 memories and LSTMs with short attention. Has the program engram, the library
 libengram.so, and kernels for newer processors, taken where they run.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libengram-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "engram (= ${package_version})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "language models with memory, for programs in C++20
 One header, engram/engram.hpp, with tensors, autograd, layers, optimisers and
 trained runs; the files for CMake and pkg-config, and four examples.")
set(CPACK_DEBIAN_PROCESSES_PACKAGE_NAME engram-mpi)
set(CPACK_DEBIAN_PROCESSES_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROCESSES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROCESSES_PACKAGE_DEPENDS "engram (= ${package_version})")
set(CPACK_DEBIAN_PROCESSES_DESCRIPTION "language models with memory, on several processes
 What lets several processes of engram train one model, by the MPI that it was
 built with.")
include(CPack)
