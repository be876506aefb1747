# Writes kintsugi_commit.hpp with the commit that is being built; an unchanged file is not written, so that
# nothing is compiled again. A tree that differs from its commit is marked.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE status
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT status EQUAL 0)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(NOT changed EQUAL 0)
    string(APPEND commit "-changed")
  endif()
endif()
set(text "#pragma once\n#define KINTSUGI_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL "${before}")
  file(WRITE ${OUTPUT} "${text}")
endif()
