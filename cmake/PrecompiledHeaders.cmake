# Precompiled headers of the standard library and of others, which take half of the compiler's time of most files. An option,
# since they hide a missing #include, and since ccache keeps what was compiled with them only if CCACHE_SLOPPINESS has
# pch_defines and time_macros, as ./quickstart and ./test set it.
option(KINTSUGI_PRECOMPILED_HEADERS "Precompile headers that most files include" OFF)
if(KINTSUGI_PRECOMPILED_HEADERS) # ccache's other condition for GCC
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# kintsugi_precompile(NAME HEADERS header... [LINK target...]): the target NAME, whose precompiled headers others reuse
# that have the same compile options. Does nothing without KINTSUGI_PRECOMPILED_HEADERS.
function(kintsugi_precompile name)
  if(NOT KINTSUGI_PRECOMPILED_HEADERS)
    return()
  endif()
  cmake_parse_arguments(PRECOMPILE "" "" "HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "// Only its headers count.\n")
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${PRECOMPILE_LINK})
  target_precompile_headers(${name} PRIVATE ${PRECOMPILE_HEADERS})
endfunction()

# kintsugi_reuse_headers(TARGET NAME): the target is compiled with the headers of kintsugi_precompile(NAME), if there are any.
function(kintsugi_reuse_headers target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

set(kintsugi_standard_headers <algorithm> <array> <bit> <cmath> <complex> <cstdint> <functional> <map> <memory> <mutex>
                              <optional> <ranges> <span> <string> <string_view> <utility> <variant> <vector>)
