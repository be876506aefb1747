// The functions of {fmt} that its headers only declare, for every file of the library and the program.
#include "base/text/format_text.hpp"

#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

namespace fmt::detail {

template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);

}  // namespace fmt::detail

#endif
