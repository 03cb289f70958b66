# The command `pangrad` and the benchmarks. Both look inside, so they link the rooms rather than the library.
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
  target_link_libraries(pangrad-bench PRIVATE ${rooms})
endif()
