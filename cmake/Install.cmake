# cmake --install: library, headers, program, find_package(kintsugi) and pkg-config. Nothing in it names the
# prefix, so the installed tree can be moved as a whole.
include(CMakePackageConfigHelpers)

option(KINTSUGI_INSTALL "Generate the install rules" ${PROJECT_IS_TOP_LEVEL})
if(NOT KINTSUGI_INSTALL)
  return()
endif()

install(TARGETS kintsugi kintsugi-cxx EXPORT kintsugi_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Opened by the dynamic linker beside libkintsugi; nothing links it.
foreach(drop_in kintsugi_blas kintsugi_cublas)
  if(TARGET ${drop_in})
    # CMake would lengthen a build path that it rewrites by colons, each of which means the folder that a program is started in.
    set_target_properties(${drop_in} ${drop_in}_audit PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
    install(TARGETS ${drop_in} ${drop_in}_audit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
# Found by `kintsugi run --library-path` beside the drop-in.
if(TARGET kintsugi_cublas)
  foreach(version 12 13)
    set_target_properties(kintsugi_path_cublas_${version} kintsugi_path_cublasLt_${version}
                          PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../.." BUILD_WITH_INSTALL_RPATH ON)
    install(TARGETS kintsugi_path_cublas_${version} kintsugi_path_cublasLt_${version}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cublas_path/${version} NAMELINK_SKIP)
  endforeach()
endif()
# Opened by clang, which the wrappers start.
if(TARGET kintsugi_pass)
  install(TARGETS kintsugi_pass LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(PROGRAMS ${PROJECT_BINARY_DIR}/kintsugi-clang ${PROJECT_BINARY_DIR}/kintsugi-clang++
          DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kintsugi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# ---------------------------------------------------------- find_package(kintsugi)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/kintsugi)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kintsugiConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/kintsugiConfig.cmake INSTALL_DESTINATION ${package_folder}
                              NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface; from 1.0 on only a major one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kintsugiConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${PROJECT_BINARY_DIR}/kintsugiConfig.cmake ${PROJECT_BINARY_DIR}/kintsugiConfigVersion.cmake
        DESTINATION ${package_folder})
install(EXPORT kintsugi_targets NAMESPACE kintsugi:: FILE kintsugiTargets.cmake DESTINATION ${package_folder})

# ---------------------------------------------------------- pkg-config
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkgconfig_folder}
           OUTPUT_VARIABLE pkgconfig_to_prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/kintsugi.pc.in ${PROJECT_BINARY_DIR}/kintsugi.pc @ONLY)
# kintsugi.hpp alone needs C++20, which a C compiler does not take.
file(WRITE ${PROJECT_BINARY_DIR}/kintsugi-cxx.pc "Name: kintsugi-cxx\nDescription: ${PROJECT_DESCRIPTION}, with kintsugi.hpp\n"
     "Version: ${PROJECT_VERSION}\nRequires: kintsugi\nCflags: -std=c++20\n")
install(FILES ${PROJECT_BINARY_DIR}/kintsugi.pc ${PROJECT_BINARY_DIR}/kintsugi-cxx.pc DESTINATION ${pkgconfig_folder})

# ---------------------------------------------------------- program and documentation
if(TARGET kintsugi_program)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
             OUTPUT_VARIABLE program_to_library)
  # Beside the library in the build folder and in the Python wheel.
  set_target_properties(kintsugi_program PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/${program_to_library}"
                                                    BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS kintsugi_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
# With their CMakeLists.txt, which builds them against what is installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
include(cmake/Package.cmake)
