// {fmt}, compiled once into the module base (format_text.cpp), so that the library has no load-time
// dependency on it.
#pragma once

#include <fmt/format.h>
