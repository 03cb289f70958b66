# Writes OUTPUT with a digest of what decides how a kernel is compiled, so that kernels kept on disk by another state of
# the compiler are not found. Run as a script: -DOUTPUT=file -DROOT=folder -DROOMS=names.
set(all "")
foreach(room IN LISTS ROOMS)
  file(GLOB_RECURSE sources "${ROOT}/src/${room}/*.cpp" "${ROOT}/src/${room}/*.h" "${ROOT}/src/${room}/*.def")
  list(SORT sources)
  foreach(source IN LISTS sources)
    file(SHA1 "${source}" digest)
    string(APPEND all "${digest}")
  endforeach()
endforeach()
string(SHA1 digest "${all}")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define PANGRAD_CODE_VERSION \"${digest}\"\n")
