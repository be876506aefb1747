// Types of functions as the calling convention sees them, to compare declarations with NVIDIA's headers.
#pragma once

#include <cstddef>
#include <type_traits>

namespace kintsugi::test {

// Class of a type in the calling convention. All pointers to types with unknown contents (void, a handle's
// struct) are equal.
struct Opaque;
template <std::size_t bytes>
struct Whole;
template <class T>
struct Pointer;

template <class T>
struct Seen {
  using type = Opaque;
};
template <class T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) struct Seen<T> {
  using type = Whole<sizeof(T)>;
};
template <class T>
requires(std::is_floating_point_v<T>) struct Seen<T> {
  using type = T;
};
template <class T>
struct Seen<T*> {
  using type = Pointer<typename Seen<std::remove_cv_t<T>>::type>;
};
template <class Return, class... Arguments>
struct Seen<Return (*)(Arguments...)> {
  using type = typename Seen<Return>::type (*)(typename Seen<Arguments>::type*...);
};

template <class Ours, class Theirs>
constexpr bool same = std::is_same_v<typename Seen<Ours>::type, typename Seen<Theirs>::type>;

}  // namespace kintsugi::test
