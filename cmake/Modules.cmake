# One target a module (docs/ARCHITECTURE.md has the layers), so that a module links just its row.

add_library(kintsugi_flags INTERFACE)
# No contraction, no fast-math: the bits of C are part of the contract.
target_compile_options(kintsugi_flags INTERFACE -ffp-contract=off -fno-fast-math -Wall -Wextra -Wpedantic
                                                $<$<NOT:$<BOOL:${KINTSUGI_UNITY_BUILD}>>:-Wshadow> -Wconversion
                                                -Wno-sign-conversion)
if(KINTSUGI_SANITIZE STREQUAL "thread")
  target_compile_options(kintsugi_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(kintsugi_flags INTERFACE -fsanitize=thread)
elseif(KINTSUGI_SANITIZE)
  target_compile_options(kintsugi_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(kintsugi_flags INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(kintsugi_flags INTERFACE _GLIBCXX_ASSERTIONS) # indices of vectors and spans
endif()
if(KINTSUGI_COVERAGE)
  target_compile_options(kintsugi_flags INTERFACE --coverage)
  target_link_options(kintsugi_flags INTERFACE --coverage)
endif()

set(kintsugi_module_properties POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
# Precompiled headers demand the same options of all modules, OpenMP's too.
if(KINTSUGI_PRECOMPILED_HEADERS)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  find_package(fmt 9 REQUIRED)
  kintsugi_precompile(kintsugi_module_headers HEADERS <fmt/format.h> ${kintsugi_standard_headers}
                      LINK kintsugi_flags OpenMP::OpenMP_CXX)
  target_include_directories(kintsugi_module_headers SYSTEM PRIVATE
                             $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(kintsugi_module_headers PROPERTIES ${kintsugi_module_properties})
endif()

# kintsugi_module(NAME DIRECTORY [FLAT] DEPENDS module...): the sources of a folder of src/ as
# kintsugi_NAME; FLAT leaves its subfolders out.
function(kintsugi_module name directory)
  cmake_parse_arguments(MODULE "FLAT" "" "DEPENDS" ${ARGN})
  set(glob GLOB_RECURSE)
  if(MODULE_FLAT)
    set(glob GLOB)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cpp)
  list(TRANSFORM MODULE_DEPENDS PREPEND kintsugi_)
  if(sources)
    add_library(kintsugi_${name} STATIC ${sources})
    set_target_properties(kintsugi_${name} PROPERTIES ${kintsugi_module_properties})
    kintsugi_library_unity_build(kintsugi_${name} ${sources})
    target_include_directories(kintsugi_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(kintsugi_${name} PRIVATE kintsugi_flags PUBLIC ${MODULE_DEPENDS})
    if(TARGET kintsugi_module_headers)
      target_precompile_headers(kintsugi_${name} REUSE_FROM kintsugi_module_headers)
      target_link_libraries(kintsugi_${name} PRIVATE OpenMP::OpenMP_CXX)
    endif()
  else()
    add_library(kintsugi_${name} INTERFACE)
    target_include_directories(kintsugi_${name} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(kintsugi_${name} INTERFACE ${MODULE_DEPENDS})
  endif()
endfunction()
