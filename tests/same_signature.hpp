// Whether a function that kiln declares by itself is called as the one that a vendor's header declares.
#pragma once

#include <type_traits>

namespace kiln::test {

template <class T>
constexpr bool is_number = std::is_integral_v<T>;

// Passed and returned alike. An enumeration of the vendor's may stand for an integer of its size with us, and
// the reverse: numbers of 32 bits and more are passed without regard to their sign.
template <class Ours, class Theirs>
constexpr bool same_abi() {
    if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
        return std::is_void_v<Ours> && std::is_void_v<Theirs>;
    } else if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
        return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
    } else if constexpr (is_number<Ours> && is_number<Theirs>) {
        return sizeof(Ours) == sizeof(Theirs) && std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
    } else if constexpr (std::is_enum_v<Ours> || std::is_enum_v<Theirs>) {
        return (std::is_enum_v<Ours> || is_number<Ours>)&&(
                   std::is_enum_v<Theirs> || is_number<Theirs>)&&sizeof(Ours) == sizeof(Theirs) &&
               sizeof(Ours) >= 4;
    } else if constexpr (std::is_floating_point_v<Ours> || std::is_floating_point_v<Theirs>) {
        return std::is_same_v<Ours, Theirs>;
    } else {
        return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs) &&
               std::is_trivially_copyable_v<Ours> && std::is_trivially_copyable_v<Theirs>;
    }
}

template <class Ours, class Theirs>
struct SameSignature : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameSignature<R(A...), S(B...)>
    : std::bool_constant<same_abi<R, S>() && (same_abi<A, B>() && ...)> {
};

}  // namespace kiln::test
