#!/usr/bin/env bash
# description_test.sh DESCRIPTION DESCRIBE CC LIBKILN INCLUDE: libkiln and its headers are what DESCRIPTION says, and every way to
# change them shows in what the script DESCRIBE makes of them.
set -euo pipefail
expected=$1 describe=$2 cc=$3 library=$4 include=$5

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

bash "$describe" "$cc" "$library" "$include" >"$work/found"
if ! diff -u --label "$(basename "$expected")" --label 'this build' "$expected" "$work/found"; then
    fail "the interface is not the one that $(basename "$expected") describes. Programs that are compiled rely on that one: what is" \
        'removed or changed needs a new minor version, what is added needs none. Where it is meant, build the target renew-abi' \
        'and commit what it writes (tests/abi/README.md).'
fi

# Every function is exported, and nothing else.
diff <(sed -n 's/^function .*\(kiln_[a-z0-9_]*\)(.*/\1/p' "$expected" | LC_ALL=C sort) \
    <(sed -n 's/^symbol \(kiln_[a-z0-9_]*\)@@.*/\1/p' "$expected") || fail 'the functions above are declared, or exported, alone'

change() { # file, edit by sed: the difference that it makes
    rm -rf "$work/changed"
    cp -r "$include" "$work/changed"
    sed -i "$2" "$work/changed/kiln/$1"
    ! cmp -s "$include/kiln/$1" "$work/changed/kiln/$1" || fail "'$2' changes nothing in $1"
    bash "$describe" "$cc" "$library" "$work/changed" | diff "$expected" - >"$work/difference" || true
}
expect_line() { # file, edit, part of the difference
    change "$1" "$2"
    grep -qF -- "$3" "$work/difference" || fail "'$2' in $1: expected the line '$3', found $(cat "$work/difference")"
}
expect_line kiln.h 's/^    uint32_t workers;/    uint32_t more;\n&/' 'member kiln_config.workers offset 92'
expect_line kiln.h 's/^    uint32_t workers;/    int32_t workers;/' 'size 4: int32_t workers'
expect_line kiln.h 's/ char name\[128\]/ char name[256]/' 'struct kiln_device_info size'
expect_line router.h 's/^    float scale; .*/    double scale;/' 'member kiln_router_args.scale offset 48 size 8: double scale'
expect_line kiln.h '/KILN_ERROR_IO = 5/d' '< enum kiln_error_code KILN_ERROR_IO 5'
expect_line kiln.h 's/KILN_DTYPE_E5M2 = 6/KILN_DTYPE_E5M2 = 9/' '> enum kiln_dtype KILN_DTYPE_E5M2 9'
expect_line kiln.h 's/^KILN_API int64_t kiln_plan_max_m/KILN_API int32_t kiln_plan_max_m/' '> function int32_t kiln_plan_max_m('
expect_line linear.h 's/void\* stream, int64_t m,/void* stream, int32_t m,/' 'kiln_linear_launch(const kiln_plan*, void*, int32_t,'
expect_line kiln.h 's/^typedef int32_t kiln_status/typedef int64_t kiln_status/' 'type int64_t kiln_status'
expect_line kiln.h 's/KILN_NO_DEVICE (-1)/KILN_NO_DEVICE (-2)/' 'macro KILN_NO_DEVICE (-2)'
change kiln.h 's/(const kiln_plan\* plan);/(const kiln_plan* the_plan);/; s/VERSION_PATCH 0/VERSION_PATCH 7/; s/^typedef/typedef  /'
[ ! -s "$work/difference" ] || fail "what is nothing to a caller is described: $(cat "$work/difference")"

# Other libraries: as this one but for a symbol, its version, or its name.
build_library() { # soname, version, symbol...
    printf '%s { global: kiln_*; local: *; };\n' "$2" >"$work/map"
    printf 'void %s() {}\n' "${@:3}" >"$work/library.c"
    "$cc" -shared -fPIC -o "$work/library.so" -Wl,-soname,"$1" -Wl,--version-script="$work/map" "$work/library.c"
    bash "$describe" "$cc" "$work/library.so" "$include" | diff "$expected" - >"$work/difference" || true
}
soname=$(sed -n 's/^soname //p' "$expected")
version=$(sed -n 's/^symbol .*@@//p' "$expected" | sort -u)
mapfile -t symbols < <(sed -n 's/^symbol \(.*\)@@.*/\1/p' "$expected")
build_library "$soname" "$version" "${symbols[@]}"
[ ! -s "$work/difference" ] || fail "a library of the same interface is described in another way: $(cat "$work/difference")"
build_library "$soname" "$version" "${symbols[@]:1}"
[ "$(grep '^[<>]' "$work/difference")" = "< symbol ${symbols[0]}@@$version" ] || fail 'a missing symbol is not seen'
build_library "$soname" "$version" "${symbols[@]}" kiln_more
[ "$(grep '^[<>]' "$work/difference")" = "> symbol kiln_more@@$version" ] || fail 'a new symbol is not seen'
build_library "$soname" KILN_9.9 "${symbols[@]}"
grep -q "> symbol ${symbols[0]}@@KILN_9.9" "$work/difference" || fail "a symbol's version is not seen"
build_library libkiln.so.9 "$version" "${symbols[@]}"
[ "$(grep '^>' "$work/difference")" = '> soname libkiln.so.9' ] || fail "the library's name is not seen"
echo "$(wc -l <"$expected") lines of $(basename "$expected") are as they were"
