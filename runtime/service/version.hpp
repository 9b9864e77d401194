// kiln's version as a word: "0.1.0".
#pragma once

#include "kiln/kiln.h"

#define KILN_STRING_(x) #x
#define KILN_STRING(x) KILN_STRING_(x)

namespace kiln::service {

inline constexpr char kVersion[] =
    KILN_STRING(KILN_VERSION_MAJOR) "." KILN_STRING(KILN_VERSION_MINOR) "." KILN_STRING(KILN_VERSION_PATCH);

}  // namespace kiln::service

#undef KILN_STRING
#undef KILN_STRING_
