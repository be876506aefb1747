# Device code without a CUDA runtime: every .cu file becomes a fat binary, all of them one object file of the library,
# and the driver loads what is wanted of them. nvcc is all that is needed of a toolkit.
find_program(KINTSUGI_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin
             DOC "Compiler of the device code; NOTFOUND: the engine cuda is built without kernels")
option(KINTSUGI_REQUIRE_CUDA "Fail where there is no CUDA toolkit" OFF)
if(KINTSUGI_REQUIRE_CUDA AND NOT KINTSUGI_NVCC)
  message(FATAL_ERROR "KINTSUGI_REQUIRE_CUDA is set and nvcc is nowhere: install a CUDA toolkit of 12.8 or newer, or name "
                      "its compiler with -DKINTSUGI_NVCC=/path/to/nvcc")
endif()

# Machine code for these, and PTX of the first for what comes after them. Of the list only 90 was run on hardware.
set(CMAKE_CUDA_ARCHITECTURES "80;90;100;120" CACHE STRING "Architectures of the generic kernels; PTX of the first")

# kintsugi_device_code(TARGET NAME FILE.cu... [DEFINES ...]): compiles the files and adds them to the target with a
# function `kintsugi::core::cuda::NAME_images()` (base/kernel_image.hpp).
function(kintsugi_device_code target name)
  set(code "")
  set(table "")
  if(KINTSUGI_NVCC)
    set(architectures "")
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
      list(APPEND architectures -gencode arch=compute_${architecture},code=sm_${architecture})
    endforeach()
    list(GET CMAKE_CUDA_ARCHITECTURES 0 first)
    list(APPEND architectures -gencode arch=compute_${first},code=compute_${first})
    foreach(source IN LISTS ARGN)
      cmake_path(GET source STEM stem)
      set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_${stem}.fatbin)
      set(flags ${architectures})
      if(stem MATCHES "_sm([0-9]+a?)$") # kernels of one architecture alone
        set(flags -gencode arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
      endif()
      add_custom_command(
        OUTPUT ${image}
        COMMAND ${KINTSUGI_NVCC} -fatbin -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -DFMT_CONSTEVAL= -DFMT_HEADER_ONLY -Xptxas -warn-spills
                -I ${PROJECT_SOURCE_DIR}/src ${flags} -MD -MF ${image}.d -o ${image} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
        DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source}
        DEPFILE ${image}.d
        COMMENT "Device code ${source}" VERBATIM COMMAND_EXPAND_LISTS)
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
