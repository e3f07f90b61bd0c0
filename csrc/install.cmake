# What `cmake --install` installs: libraries, headers, man pages, and the two ways to find them.
#
# Nothing that is installed names the prefix: the pkg-config file and the CMake package find the
# rest from where they lie, so that an installed tree can be moved. setup.py fills the same
# templates for the wheel.

file(RELATIVE_PATH CWIST_JQ_LIB_TO_INCLUDE "${CMAKE_INSTALL_FULL_LIBDIR}"
     "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
file(RELATIVE_PATH lib_to_bin "${CMAKE_INSTALL_FULL_LIBDIR}" "${CMAKE_INSTALL_FULL_BINDIR}")
set(CWIST_JQ_VERSION "${PROJECT_VERSION}")

set(libraries "")
set(CWIST_JQ_SHARED_FILE "")
set(CWIST_JQ_IMPLIB_FILE "")
set(CWIST_JQ_STATIC_FILE "")
set(CWIST_JQ_REQUIRES "") # the shared library brings what it needs by itself
set(shared_name "${CMAKE_SHARED_LIBRARY_PREFIX}cwist_jq")
if(CWIST_JQ_SHARED)
  list(APPEND libraries cwist_jq)
  if(WIN32)
    set(CWIST_JQ_SHARED_FILE "${lib_to_bin}/${shared_name}${CMAKE_SHARED_LIBRARY_SUFFIX}")
    set(CWIST_JQ_IMPLIB_FILE
        "${CMAKE_IMPORT_LIBRARY_PREFIX}cwist_jq${CMAKE_IMPORT_LIBRARY_SUFFIX}")
  elseif(APPLE)
    set(CWIST_JQ_SHARED_FILE "${shared_name}.${abi_version}${CMAKE_SHARED_LIBRARY_SUFFIX}")
  else()
    set(CWIST_JQ_SHARED_FILE "${shared_name}${CMAKE_SHARED_LIBRARY_SUFFIX}.${abi_version}")
  endif()
endif()
if(CWIST_JQ_STATIC)
  list(APPEND libraries cwist_jq_static)
  string(REPLACE ";" " " CWIST_JQ_REQUIRES "${requires}")
  set(CWIST_JQ_STATIC_FILE
      "${CMAKE_STATIC_LIBRARY_PREFIX}${static_name}${CMAKE_STATIC_LIBRARY_SUFFIX}")
endif()

configure_file(cwist-jq.pc.in cwist-jq.pc @ONLY)
configure_file(cwist_jq-config.cmake.in cwist_jq-config.cmake @ONLY)
configure_file(cwist_jq-config-version.cmake.in cwist_jq-config-version.cmake @ONLY)

if(CWIST_JQ_MAN)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ../include/*.h)
  add_custom_command(
    OUTPUT man/man7/cwist-jq.7
    COMMAND "${CWIST_JQ_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/tools/gen_man.py" man
    DEPENDS tools/gen_man.py tools/gen_cdef.py man/cwist-jq.7.in ${headers}
    COMMENT "Making the man pages")
  add_custom_target(cwist_jq_man ALL DEPENDS man/man7/cwist-jq.7)
  install(DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/man/" DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()

install(TARGETS ${libraries} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
                             LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                             ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ../include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cwist-jq.pc"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cwist_jq-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/cwist_jq-config-version.cmake"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cwist_jq)
