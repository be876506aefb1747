# Precompiled standard headers, which take half of the compiler's time of most files. An option, since they hide a missing
# #include, and since ccache does not keep what was compiled with them.
option(KINTSUGI_PRECOMPILED_HEADERS "Precompile the standard headers of the modules" OFF)

# kintsugi_precompile(NAME HEADERS header... [LINK target...]): the target NAME, whose precompiled headers others reuse
# that have the same compile options.
function(kintsugi_precompile name)
  cmake_parse_arguments(PRECOMPILE "" "" "HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "// Only its headers count.\n")
  add_library(${name} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${PRECOMPILE_LINK})
  target_precompile_headers(${name} PRIVATE ${PRECOMPILE_HEADERS})
endfunction()

set(kintsugi_standard_headers <algorithm> <array> <bit> <cmath> <complex> <cstdint> <functional> <map> <memory> <mutex>
                              <optional> <ranges> <span> <string> <string_view> <utility> <variant> <vector>)
