# Whether device code is built, by which compiler and for which architectures:
#   device_code          TRUE or FALSE
#   device_code_reason   why none is built, in words, and the option that changes it
#   device_architectures numbers such as 90: machine code for each, PTX of the first
#   only_native          TRUE: for the GPUs of this machine alone
#   device_compiler      nvcc, "" where there is none that can be used; toolkit_version
set(KINTSUGI_DEVICE_CODE auto CACHE STRING
    "Kernels of the engine cuda. auto: for the GPUs of this machine, or for CMAKE_CUDA_ARCHITECTURES where it is given; on: for \
all architectures, and an error without a toolkit, as packages are built; off: none")
set_property(CACHE KINTSUGI_DEVICE_CODE PROPERTY STRINGS auto on off)
find_program(KINTSUGI_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin
             DOC "Compiler of the device code")
set(KINTSUGI_DEVICE_IMAGES "" CACHE PATH
    "Another build folder of these sources, whose compiled device code is taken; empty: it is compiled here")

# What `all` stands for. Of the list only 90 was run on hardware.
set(all_architectures 80 90 100 120)
set(least_architecture 80)
# sm_120 and sm_100 are known from 12.8 on.
set(least_toolkit 12.8)

string(TOLOWER "${KINTSUGI_DEVICE_CODE}" device_choice)
if(NOT device_choice MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "KINTSUGI_DEVICE_CODE is \"${KINTSUGI_DEVICE_CODE}\", which is none of auto, on and off: "
                      "-DKINTSUGI_DEVICE_CODE=on builds device code for all architectures, off builds none")
endif()

# ---------------------------------------------------------- the compiler
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
string(APPEND toolkit_missing "; a toolkit of CUDA ${least_toolkit} or newer is needed, and -DKINTSUGI_NVCC=/path/to/nvcc names "
                              "its compiler")

# ---------------------------------------------------------- the architectures
# Compute capabilities of the GPUs of this machine that kernels can run on; `found` counts the others too.
function(find_gpu_architectures result found)
  set(architectures "")
  set(numbers "")
  if(NOT CMAKE_CROSSCOMPILING)
    try_run(status compiled SOURCES ${PROJECT_SOURCE_DIR}/cmake/gpu_architectures.c LINK_LIBRARIES ${CMAKE_DL_LIBS}
            RUN_OUTPUT_VARIABLE output NO_CACHE)
    if(compiled AND status EQUAL 0)
      string(REGEX MATCHALL "[0-9]+" numbers "${output}")
    endif()
  endif()
  foreach(number IN LISTS numbers)
    if(number GREATER_EQUAL least_architecture)
      list(APPEND architectures ${number})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES architectures)
  list(SORT architectures COMPARE NATURAL)
  list(LENGTH numbers count)
  set(${result} "${architectures}" PARENT_SCOPE)
  set(${found} ${count} PARENT_SCOPE)
endfunction()

# A GPU that is newer than the toolkit runs the PTX of the list of all.
function(replace_unknown_architectures list)
  execute_process(COMMAND ${device_compiler} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  foreach(architecture IN LISTS ${list})
    if(NOT known MATCHES "compute_${architecture}\n")
      set(${list} ${all_architectures} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

set(named_architectures "${CMAKE_CUDA_ARCHITECTURES}")
if(NOT named_architectures)
  set(named_architectures native)
  if(device_choice STREQUAL "on")
    set(named_architectures all)
  endif()
endif()
set(only_native FALSE)
set(gpu_missing "")
if(device_choice STREQUAL "off")
  set(device_architectures "")
elseif(KINTSUGI_DEVICE_IMAGES)
  if(NOT EXISTS ${KINTSUGI_DEVICE_IMAGES}/device_architectures.cmake)
    message(FATAL_ERROR "KINTSUGI_DEVICE_IMAGES is ${KINTSUGI_DEVICE_IMAGES}, which is no build folder with device code")
  endif()
  include(${KINTSUGI_DEVICE_IMAGES}/device_architectures.cmake)
elseif(named_architectures STREQUAL "all")
  set(device_architectures ${all_architectures})
elseif(named_architectures STREQUAL "native")
  set(only_native TRUE)
  find_gpu_architectures(device_architectures gpus_found)
  if(NOT device_architectures)
    set(gpu_missing "no GPU was found in the machine that built it")
    if(gpus_found)
      set(gpu_missing "the machine that built it has no GPU of compute capability 8.0 or newer")
    endif()
  elseif(device_compiler)
    replace_unknown_architectures(device_architectures)
  endif()
else()
  set(device_architectures ${named_architectures})
  foreach(architecture IN LISTS device_architectures)
    if(NOT architecture MATCHES "^[0-9]+$" OR architecture LESS least_architecture)
      message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES has \"${architecture}\": numbers from ${least_architecture} on such as 90 are "
                          "accepted, and all or native alone")
    endif()
  endforeach()
endif()

# ---------------------------------------------------------- the choice
set(device_code TRUE)
set(device_code_reason "")
if(device_choice STREQUAL "off")
  set(device_code_reason "KINTSUGI_DEVICE_CODE=off; -DKINTSUGI_DEVICE_CODE=on builds it for all architectures")
elseif(KINTSUGI_DEVICE_IMAGES)
  # Compiled elsewhere: no compiler and no GPU is needed.
elseif(gpu_missing)
  set(device_code_reason "KINTSUGI_DEVICE_CODE=${device_choice}, and ${gpu_missing}; -DKINTSUGI_DEVICE_CODE=on builds it for all \
architectures")
elseif(NOT device_compiler)
  set(device_code_reason "KINTSUGI_DEVICE_CODE=${device_choice}, and ${toolkit_missing}")
endif()
if(device_code_reason)
  set(device_code FALSE)
  if(device_choice STREQUAL "on")
    message(FATAL_ERROR "No device code can be built: ${device_code_reason}. -DKINTSUGI_DEVICE_CODE=off builds without it")
  endif()
endif()
if(device_code)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/device_architectures.cmake CONTENT
       "set(device_architectures @device_architectures@)\nset(only_native @only_native@)\n" @ONLY)
else()
  file(REMOVE ${PROJECT_BINARY_DIR}/device_architectures.cmake)
endif()
