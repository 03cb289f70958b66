# pg_room(<name> [USES <rooms>...] [LIBS <libraries>...])
#
# Declares the room src/<name>/: the static library pg_<name> of all .cpp files beneath it, linked to the rooms it may
# include and to third-party libraries. A room without sources is an interface library, so an empty folder builds.
function(pg_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;LIBS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(TRANSFORM arg_USES PREPEND pg_)
  if(sources)
    add_library(pg_${name} STATIC ${sources})
    set(scope PUBLIC)
    set_property(GLOBAL APPEND PROPERTY PG_OBJECTS $<TARGET_OBJECTS:pg_${name}>)
  else()
    add_library(pg_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(pg_${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(pg_${name} ${scope} ${arg_USES} ${arg_LIBS})
  set_property(GLOBAL APPEND PROPERTY PG_ROOMS pg_${name})
  set_property(GLOBAL APPEND PROPERTY PG_LIBS ${arg_LIBS})
endfunction()

# pg_module(<name> USES <rooms>...)
#
# Declares src/<name>/ as the module libpangrad_<name>.so, which is opened at run time and linked by nothing. It may
# include headers of the rooms it names, but links none: their code must not exist twice in a process.
function(pg_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_library(pangrad_${name} MODULE ${sources})
  target_include_directories(pangrad_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  # Whoever may come to open the module gets it built first.
  foreach(room IN LISTS arg_USES)
    add_dependencies(pg_${room} pangrad_${name})
  endforeach()
  install(TARGETS pangrad_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# pg_code_version(<room> OF <rooms...>): the room can include "code_version.h", a digest of the sources of the others.
function(pg_code_version room)
  cmake_parse_arguments(arg "" "" "OF" ${ARGN})
  set(sources)
  foreach(of IN LISTS arg_OF)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${of}/*.cpp ${PROJECT_SOURCE_DIR}/src/${of}/*.h
         ${PROJECT_SOURCE_DIR}/src/${of}/*.def)
    list(APPEND sources ${found})
  endforeach()
  set(header ${PROJECT_BINARY_DIR}/generated/code_version.h)
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${header} -DROOT=${PROJECT_SOURCE_DIR} "-DROOMS=${arg_OF}" -P
            ${PROJECT_SOURCE_DIR}/cmake/CodeVersion.cmake
    DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/CodeVersion.cmake
    COMMENT "Digest of the kernel compiler" VERBATIM)
  target_sources(pg_${room} PRIVATE ${header})
  target_include_directories(pg_${room} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
