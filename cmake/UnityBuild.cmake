# Unity builds: the files of a folder are compiled together, since half of the compiler's time goes into headers and into what
# each file would instantiate again. -DCMAKE_UNITY_BUILD=OFF compiles them one by one, which is quicker while one of them
# changes. The library and the drop-ins are compiled together only on request, as ./test does for the sanitizers; its release
# build compiles their files alone, so that a missing #include is found.
option(KINTSUGI_UNITY_BUILD "Compile the files of a folder of the library and of the drop-ins together" OFF)

# kintsugi_compile_together(TARGET source...): the sources of a folder become one translation unit of the target.
function(kintsugi_compile_together target)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE group)
    cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${kintsugi_SOURCE_DIR})
    cmake_path(GET group PARENT_PATH group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  endif()
endfunction()

# kintsugi_library_unity_build(TARGET source...): the same with KINTSUGI_UNITY_BUILD. A file that defines names of a neighbour
# again has the property SKIP_UNITY_BUILD_INCLUSION. GCC does not warn of shadowed names then
# (cmake/Modules.cmake), since they would be those of a neighbour.
function(kintsugi_library_unity_build target)
  if(KINTSUGI_UNITY_BUILD)
    kintsugi_compile_together(${target} ${ARGN})
  endif()
endfunction()
