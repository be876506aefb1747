// Explicit instantiations of {fmt}'s functions that its headers only declare, for all files of library and
// program.
#include "base/text/format_text.hpp"

#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

namespace fmt::detail {

template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);

}  // namespace fmt::detail

#endif
