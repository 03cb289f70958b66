# The command `pangrad` and the benchmarks, which look inside, so they link the rooms rather than the library; and the
# examples, which are programs like any other.
get_property(rooms GLOBAL PROPERTY PG_ROOMS)

file(GLOB app_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/*.cpp)
if(app_sources)
  find_package(CLI11 REQUIRED CONFIG)
  add_executable(pangrad-command ${app_sources})
  target_link_libraries(pangrad-command PRIVATE ${rooms} CLI11::CLI11)
  set_target_properties(pangrad-command PROPERTIES OUTPUT_NAME pangrad)
  install(TARGETS pangrad-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
if(PANGRAD_BENCH AND bench_sources)
  add_executable(pangrad-bench ${bench_sources})
  target_link_libraries(pangrad-bench PRIVATE ${rooms} nlohmann_json::nlohmann_json)
  target_compile_definitions(
    pangrad-bench PRIVATE PANGRAD_RIVALS="${PROJECT_SOURCE_DIR}/bench/rivals" PANGRAD_VERSION_TEXT="${PROJECT_VERSION}")
  # The libraries that figures are compared with, in a program of their own; without them such figures are not met.
  find_library(openblas_library openblas)
  find_library(dnnl_library dnnl)
  find_path(dnnl_headers dnnl.hpp)
  if(openblas_library AND dnnl_library AND dnnl_headers)
    add_executable(pangrad-rivals ${PROJECT_SOURCE_DIR}/bench/rivals/native.cpp)
    target_link_libraries(pangrad-rivals PRIVATE ${dnnl_library} ${openblas_library})
    add_dependencies(pangrad-bench pangrad-rivals)
  endif()
endif()

file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
if(PANGRAD_TESTS)
  foreach(source IN LISTS example_sources)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE pangrad::pangrad)
    add_test(NAME example_${name} COMMAND example_${name})
  endforeach()
endif()
