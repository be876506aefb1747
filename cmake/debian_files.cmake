# What Debian's policy wants of a package and `cmake --install` has no use for: run by CPack on the staged tree.
cmake_minimum_required(VERSION 3.25)
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
set(folder ${share}/doc/${CPACK_PACKAGE_NAME})
file(REMOVE ${folder}/LICENSE)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH where that is set
file(CONFIGURE OUTPUT ${folder}/changelog.Debian CONTENT "kintsugi (@CPACK_PACKAGE_VERSION@-@CPACK_DEBIAN_PACKAGE_RELEASE@) unstable; urgency=medium

  * Built from the sources of this version; CHANGELOG.md has its changes.

 -- @CPACK_PACKAGE_CONTACT@  @date@
" @ONLY)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../python/LICENSES-OF-PARTS.txt licenses_of_parts)
string(FIND "${licenses_of_parts}" "\nlibgomp\n" end) # the package depends on Debian's own
string(SUBSTRING "${licenses_of_parts}" 0 ${end} licenses_of_parts)
file(CONFIGURE OUTPUT ${folder}/copyright CONTENT "Copyright: The Kintsugi maintainers
License: Apache-2.0, of which a copy is in /usr/share/common-licenses/Apache-2.0

@licenses_of_parts@" @ONLY)
execute_process(COMMAND gzip -9n ${folder}/changelog.Debian ${share}/man/man1/kintsugi.1 COMMAND_ERROR_IS_FATAL ANY)
