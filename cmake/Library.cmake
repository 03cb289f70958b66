# The shared library `pangrad`: every room in one, hidden but for what PG_API exports; and what the LLVM module links.
get_property(objects GLOBAL PROPERTY PG_OBJECTS)
get_property(libs GLOBAL PROPERTY PG_LIBS)
list(REMOVE_DUPLICATES libs)

add_library(pangrad SHARED ${objects})
add_library(pangrad::pangrad ALIAS pangrad)
target_include_directories(pangrad INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(pangrad INTERFACE cxx_std_20)
target_link_libraries(pangrad PRIVATE ${libs})
# Its threads and its fork handlers run on after a dlclose.
target_link_options(pangrad PRIVATE LINKER:-z,nodelete)
set_target_properties(pangrad PROPERTIES
  LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

# LLVM is reached through its C API, so one library and one folder of headers are all the module takes.
if(TARGET pangrad_llvm)
  find_library(PANGRAD_LLVM_LIBRARY NAMES LLVM-19 LLVM HINTS /usr/lib/llvm-19/lib REQUIRED)
  find_path(PANGRAD_LLVM_INCLUDE NAMES llvm-c/Core.h HINTS /usr/lib/llvm-19/include REQUIRED)
  target_include_directories(pangrad_llvm SYSTEM PRIVATE ${PANGRAD_LLVM_INCLUDE})
  target_link_libraries(pangrad_llvm PRIVATE ${PANGRAD_LLVM_LIBRARY})
  add_dependencies(pangrad pangrad_llvm)
endif()

install(TARGETS pangrad EXPORT pangrad LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pangrad DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(EXPORT pangrad NAMESPACE pangrad:: FILE pangrad-config.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pangrad)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(pangrad-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pangrad-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pangrad)
