# Device code without a CUDA runtime: every .cu file becomes a fat binary, all of them one object file of the library,
# and the driver loads what is wanted of them. nvcc is all that is needed of a toolkit.
include(${CMAKE_CURRENT_LIST_DIR}/DeviceChoice.cmake)

# Sets the variable `result` to the architecture from whose PTX the machine code of another is made. From 9.0 on all share the
# PTX of 9.0 (tests/cmake/test_device_choice.py keeps conditions for later ones out of the sources): nvcc spends more than half
# of its time on compiling C++ to PTX.
function(ptx_of architecture result)
  if(architecture GREATER 90)
    set(architecture 90)
  endif()
  set(${result} ${architecture} PARENT_SCOPE)
endfunction()

if(device_code)
  list(JOIN device_architectures ", " architecture_names)
  list(GET device_architectures 0 first)
  ptx_of(${first} ptx_architecture)
  set(device_code_summary "sm ${architecture_names} and PTX of ${ptx_architecture}, ")
  if(KINTSUGI_DEVICE_IMAGES)
    string(APPEND device_code_summary "compiled in ${KINTSUGI_DEVICE_IMAGES}")
  else()
    string(APPEND device_code_summary "by CUDA ${toolkit_version} (${device_compiler})")
  endif()
else()
  set(device_code_summary "none (${device_code_reason}); the engine cuda will say so")
endif()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/device_toolkit.txt CONTENT "@toolkit_version@\n" @ONLY)
# A notice: ./quickstart and ./test let it through.
message(NOTICE "Device code: ${device_code_summary}")

# The two cores of a small machine are busy with two files; nvcc's own threads would only contend with them. Compressed,
# machine code is a ninth.
set(device_flags -fatbin --compress-mode=size -c -std=c++20 -O3 -fmad=false --expt-relaxed-constexpr -DFMT_CONSTEVAL= -DFMT_HEADER_ONLY
                 -Werror all-warnings -Xptxas -v,-Werror -I ${PROJECT_SOURCE_DIR}/src)

# The architectures of a file: its name says so where it is for one alone (_sm90a), or for those from
# 9.0 on, which have clusters (_clusters).
function(device_architectures stem result)
  set(flags "")
  if(stem MATCHES "_sm([0-9]+a?)$")
    set(flags -gencode arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
  else()
    set(wanted ${device_architectures})
    if(stem MATCHES "_clusters$")
      list(FILTER wanted EXCLUDE REGEX "^[1-8][0-9]$")
      if(NOT wanted)
        set(wanted 90) # which runs the PTX of an older one
      endif()
    endif()
    foreach(architecture IN LISTS wanted)
      ptx_of(${architecture} ptx)
      list(APPEND flags -gencode arch=compute_${ptx},code=sm_${architecture})
    endforeach()
    if(NOT stem MATCHES "_clusters$")
      list(APPEND flags -gencode arch=compute_${ptx_architecture},code=compute_${ptx_architecture})
    endif()
  endif()
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# FALSE for code of another generation alone where only the GPUs of this machine matter; the engine then does without it.
function(is_wanted stem result)
  set(${result} TRUE PARENT_SCOPE)
  if(only_native AND stem MATCHES "_sm([0-9]+)a$" AND NOT CMAKE_MATCH_1 IN_LIST device_architectures)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Makes an image of a file of the current source folder, with definitions such as KINTSUGI_F32: compiles it, or takes what another
# build folder has compiled.
function(device_image image source)
  set(script ${kintsugi_SOURCE_DIR}/cmake/compile_device_code)
  if(KINTSUGI_DEVICE_IMAGES)
    cmake_path(RELATIVE_PATH image BASE_DIRECTORY ${kintsugi_BINARY_DIR} OUTPUT_VARIABLE place)
    set(script ${kintsugi_SOURCE_DIR}/cmake/take_device_code)
    set(command ${script} ${KINTSUGI_DEVICE_IMAGES}/${place} ${image})
  else()
    cmake_path(GET source STEM stem)
    device_architectures(${stem} architectures)
    list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
    set(spills "") # in a product every one costs; elsewhere the table of kernels shows them
    if(source MATCHES "/gemm/")
      set(spills -Xptxas -warn-spills)
    endif()
    set(command ${script} ${image} ${CMAKE_CXX_COMPILER_LAUNCHER} ${device_compiler} ${device_flags} ${spills}
                ${architectures} ${definitions} -MD -MF ${image}.d -o ${image} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endif()
  add_custom_command(OUTPUT ${image} COMMAND ${command} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${script}
                     DEPFILE ${image}.d COMMENT "Device code ${source}" VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# The lines of a list of shards: sources that are compiled once for each, with its definitions (engines/cuda/shards.txt).
function(read_shards file result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} lines REGEX "^[^#]")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

# kintsugi_device_code(TARGET NAME [SHARDS LIST] FILE.cu...): compiles the files, those of the list of shards as it says, and
# adds them to the target with a function `kintsugi::core::cuda::NAME_images()`, and NAME_build(), what it was built for or why
# not (base/cuda/cuda_driver.hpp).
function(kintsugi_device_code target name)
  cmake_parse_arguments(DEVICE "" "SHARDS" "" ${ARGN})
  set(items ${DEVICE_UNPARSED_ARGUMENTS})
  if(DEVICE_SHARDS)
    cmake_path(GET DEVICE_SHARDS PARENT_PATH folder)
    read_shards(${CMAKE_CURRENT_SOURCE_DIR}/${DEVICE_SHARDS} shards)
    foreach(shard IN LISTS shards)
      string(REPLACE " " ";" words "${shard}")
      list(GET words 1 source)
      list(REMOVE_ITEM items ${folder}/${source})
    endforeach()
    list(TRANSFORM shards PREPEND "${folder}/")
    list(APPEND items ${shards})
    list(SORT items)
  endif()
  set(code "")
  set(table "")
  set(images "")
  if(device_code)
    foreach(item IN LISTS items)
      string(REPLACE " " ";" definitions "${item}")
      list(POP_FRONT definitions source)
      cmake_path(GET source STEM stem)
      if(definitions) # of a shard
        list(POP_FRONT definitions source)
        cmake_path(APPEND folder ${source} OUTPUT_VARIABLE source)
      endif()
      is_wanted(${stem} wanted)
      if(NOT wanted)
        continue()
      endif()
      set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_${stem}.fatbin)
      device_image(${image} ${source} ${definitions})
      list(APPEND images ${image})
      string(APPEND code "asm(\".section .rodata\\n.balign 64\\n.global kintsugi_${name}_${stem}\\n"
                         ".hidden kintsugi_${name}_${stem}\\nkintsugi_${name}_${stem}:\\n.incbin \\\"${image}\\\"\\n"
                         ".previous\\n\");\nextern \"C\" const unsigned char kintsugi_${name}_${stem}[];\n")
      string(APPEND table "      {\"${stem}\", kintsugi_${name}_${stem}},\n")
    endforeach()
  endif()
  set(architecture_list "")
  foreach(architecture IN LISTS device_architectures)
    string(APPEND architecture_list "${architecture}, ")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${name}_images.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "// Made by cmake/DeviceCode.cmake.
#include \"base/cuda/cuda_driver.hpp\"
${code}
namespace kintsugi::core::cuda {
KernelImages ${name}_images();
KernelImages ${name}_images() {
  static const KernelImage images[] = {
${table}      {nullptr, nullptr}};
  return {images, sizeof images / sizeof *images - 1};
}
DeviceBuild ${name}_build();
DeviceBuild ${name}_build() {
  static const int architectures[] = {${architecture_list}0};
  return {\"${device_code_reason}\", {architectures, sizeof architectures / sizeof *architectures - 1}};
}
}  // namespace kintsugi::core::cuda
" @ONLY)
  target_sources(${target} PRIVATE ${generated})
  set_source_files_properties(${generated} PROPERTIES OBJECT_DEPENDS "${images}")
endfunction()
