# Language level, warnings, sanitizers and where outputs go: all that holds for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# The LLVM module is opened by its bare name, so whatever may open it must look in these places.
set(CMAKE_BUILD_RPATH ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wimplicit-fallthrough
  -Wcast-align -Wold-style-cast -Wunused -Wnull-dereference -Wmismatched-tags -Wunreachable-code
  # Option structs are filled by name; what is left out keeps its default.
  -Wno-missing-designated-field-initializers
  # Nodes end in their sources: a flexible array member.
  -Wno-c99-extensions
  # An elementwise operation rounds once, also when the host folds it.
  -ffp-contract=off)

# Abseil's targets name some thirty shared libraries; load those we call.
add_link_options(LINKER:--as-needed)

if(PANGRAD_SANITIZE)
  add_compile_options(-fsanitize=${PANGRAD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PANGRAD_SANITIZE})
endif()

# Relative paths in the cache's keys let several checkouts share it.
find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
