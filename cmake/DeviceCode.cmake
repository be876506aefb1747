# Device code without a CUDA runtime: every .cu file becomes a fat binary, all of them one object file of the library,
# and the driver loads what is wanted of them. nvcc is all that is needed of a toolkit.
find_program(KINTSUGI_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin
             DOC "Compiler of the device code; OFF: the engine cuda is built without kernels")
set(KINTSUGI_DEVICE_IMAGES "" CACHE PATH
    "Another build folder of these sources, whose compiled device code is taken; empty: it is compiled here")
option(KINTSUGI_REQUIRE_CUDA "Fail where there is no CUDA toolkit" OFF)

# Machine code for these, and PTX of the first for what comes after them. Of the list only 90 was run on hardware.
set(CMAKE_CUDA_ARCHITECTURES "80;90;100;120" CACHE STRING "Architectures of the generic kernels; PTX of the first")

# sm_120 and sm_100 are known from 12.8 on.
set(least_toolkit 12.8)
set(device_compiler "")
set(toolkit_missing "nvcc was not found")
if(KINTSUGI_NVCC)
  execute_process(COMMAND ${KINTSUGI_NVCC} --version OUTPUT_VARIABLE toolkit_version ERROR_QUIET)
  if(NOT toolkit_version MATCHES "release [0-9.]+, V([0-9.]+)")
    set(toolkit_missing "${KINTSUGI_NVCC} does not say its version")
  elseif(CMAKE_MATCH_1 VERSION_LESS least_toolkit)
    set(toolkit_missing "${KINTSUGI_NVCC} is of CUDA ${CMAKE_MATCH_1}")
  else()
    set(toolkit_version ${CMAKE_MATCH_1})
    set(device_compiler ${KINTSUGI_NVCC})
  endif()
endif()
set(toolkit_wanted "a toolkit of CUDA ${least_toolkit} or newer is needed; -DKINTSUGI_NVCC=/path/to/nvcc names its compiler")
if(device_compiler)
  list(JOIN CMAKE_CUDA_ARCHITECTURES ", " architecture_names)
  list(GET CMAKE_CUDA_ARCHITECTURES 0 ptx_architecture)
  set(device_code_summary "sm ${architecture_names} and PTX of ${ptx_architecture}, by CUDA ${toolkit_version} (${device_compiler})")
elseif(KINTSUGI_REQUIRE_CUDA)
  message(FATAL_ERROR "KINTSUGI_REQUIRE_CUDA is set, but ${toolkit_missing}: ${toolkit_wanted}")
else()
  set(device_code_summary "none, the engine cuda will say so: ${toolkit_missing}; ${toolkit_wanted}")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/device_toolkit.txt CONTENT "@toolkit_version@\n" @ONLY)
if(KINTSUGI_DEVICE_IMAGES)
  set(device_code_summary "that of ${KINTSUGI_DEVICE_IMAGES}")
endif()
# A notice: ./quickstart and ./test let it through.
message(NOTICE "Device code: ${device_code_summary}")

# The two cores of a small machine are busy with two files; nvcc's own threads would only contend with them. Compressed,
# machine code is a ninth.
set(device_flags -fatbin --compress-mode=size -c -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -DFMT_CONSTEVAL= -DFMT_HEADER_ONLY
                 -Werror all-warnings -Xptxas -v,-Werror -I ${PROJECT_SOURCE_DIR}/src)

# The architectures of a file: its name says so where it is for one alone.
function(device_architectures stem result)
  set(flags "")
  if(stem MATCHES "_sm([0-9]+a?)$")
    set(flags -gencode arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
  else()
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
      list(APPEND flags -gencode arch=compute_${architecture},code=sm_${architecture})
    endforeach()
    list(APPEND flags -gencode arch=compute_${ptx_architecture},code=compute_${ptx_architecture})
  endif()
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# Makes an image of a file of the current source folder: compiles it, or takes what another build folder has compiled.
function(device_image image source)
  set(script ${PROJECT_SOURCE_DIR}/cmake/compile_device_code)
  if(KINTSUGI_DEVICE_IMAGES)
    cmake_path(RELATIVE_PATH image BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE place)
    set(script ${PROJECT_SOURCE_DIR}/cmake/take_device_code)
    set(command ${script} ${KINTSUGI_DEVICE_IMAGES}/${place} ${image})
  else()
    cmake_path(GET source STEM stem)
    device_architectures(${stem} architectures)
    set(spills "") # in a product every one costs; elsewhere the table of kernels shows them
    if(source MATCHES "/products/")
      set(spills -Xptxas -warn-spills)
    endif()
    set(command ${script} ${image} ${CMAKE_CXX_COMPILER_LAUNCHER} ${device_compiler} ${device_flags} ${spills}
                ${architectures} -MD -MF ${image}.d -o ${image} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endif()
  add_custom_command(OUTPUT ${image} COMMAND ${command} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${script}
                     DEPFILE ${image}.d COMMENT "Device code ${source}" VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# kintsugi_device_code(TARGET NAME FILE.cu...): compiles the files and adds them to the target with a function
# `kintsugi::core::cuda::NAME_images()` (base/kernel_image.hpp).
function(kintsugi_device_code target name)
  set(code "")
  set(table "")
  set(images "")
  if(device_compiler OR KINTSUGI_DEVICE_IMAGES)
    foreach(source IN LISTS ARGN)
      cmake_path(GET source STEM stem)
      set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_${stem}.fatbin)
      device_image(${image} ${source})
      list(APPEND images ${image})
      string(APPEND code "asm(\".section .rodata\\n.balign 64\\n.global kintsugi_${name}_${stem}\\n"
                         ".hidden kintsugi_${name}_${stem}\\nkintsugi_${name}_${stem}:\\n.incbin \\\"${image}\\\"\\n"
                         ".previous\\n\");\nextern \"C\" const unsigned char kintsugi_${name}_${stem}[];\n")
      string(APPEND table "      {\"${stem}\", kintsugi_${name}_${stem}},\n")
    endforeach()
  endif()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}_images.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "// Made by cmake/DeviceCode.cmake.
#include \"base/kernel_image.hpp\"
${code}
namespace kintsugi::core::cuda {
KernelImages ${name}_images();
KernelImages ${name}_images() {
  static const KernelImage images[] = {
${table}      {nullptr, nullptr}};
  return {images, sizeof images / sizeof *images - 1};
}
}  // namespace kintsugi::core::cuda
" @ONLY)
  target_sources(${target} PRIVATE ${generated})
  set_source_files_properties(${generated} PROPERTIES OBJECT_DEPENDS "${images}")
endfunction()
