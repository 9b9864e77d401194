#!/usr/bin/env bash
# headers_test.sh CC CXX INCLUDE: each public header stands alone, in strict C11 and in strict C++20.
set -euo pipefail
cc=$1 cxx=$2 include=$3
strict=(-pedantic-errors -Wall -Wextra -Wundef -Werror -fsyntax-only -I "$include")
for header in "$include"/kiln/*.h "$include"/kiln/*.hpp; do
    name=kiln/${header##*/}
    echo "$name"
    case $name in
        *.h) "$cc" -std=c11 "${strict[@]}" -Wstrict-prototypes -x c - <<<"#include \"$name\"" ;;
    esac
    "$cxx" -std=c++20 "${strict[@]}" -Wshadow -Wnon-virtual-dtor -x c++ - <<<"#include \"$name\""
done
