# The pages of the installed program, and the Debian package: cpack -G DEB.

# ---------------------------------------------------------- manual and completion
# Written at installation by the program itself, which only this machine's kind can run.
set(KINTSUGI_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING
    "Folder of completions for zsh, relative to the prefix; Debian's packages have share/zsh/vendor-completions")
if(TARGET kintsugi_program AND NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    function(write_page file)
      set(path \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${file}\")
      message(STATUS \"Installing: \${path}\")
      cmake_path(GET path PARENT_PATH folder)
      file(MAKE_DIRECTORY \${folder})
      execute_process(COMMAND \"$<TARGET_FILE:kintsugi_program>\" \${ARGN} OUTPUT_FILE \${path} COMMAND_ERROR_IS_FATAL ANY)
    endfunction()
    write_page(${CMAKE_INSTALL_MANDIR}/man1/kintsugi.1 --man)
    write_page(${CMAKE_INSTALL_DATADIR}/bash-completion/completions/kintsugi completion bash)
    write_page(${KINTSUGI_ZSH_FOLDER}/_kintsugi completion zsh)
    write_page(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/kintsugi.fish completion fish)")
endif()

# ---------------------------------------------------------- Debian package
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kintsugi)
set(CPACK_PACKAGE_VENDOR Kintsugi)
set(CPACK_PACKAGE_CONTACT "The Kintsugi maintainers <maintainers@kintsugi.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "accurate matrix products on low-precision matrix units")
set(CPACK_PACKAGE_DESCRIPTION "Kintsugi multiplies matrices at FP32, FP64 or exact accuracy on matrix units
that only know FP16, BF16 or INT8, with an error bound that is known
beforehand. This package has the library for C and C++, the program kintsugi,
and drop-in libraries for BLAS and cuBLAS.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # by dpkg-shlibdeps
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# With what stands for the real cuBLAS, which users link beside the stubs of cublas_path.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/drop_in/cublas/12
                                                ${PROJECT_BINARY_DIR}/drop_in/cublas/13)
# Opened by name, so that dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread | libopenblas0")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "bash-completion, man-db")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/debian/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
include(CPack)
