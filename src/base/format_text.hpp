// {fmt}, header-only, so that the library has no load-time dependency on it.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#include <fmt/format.h>
