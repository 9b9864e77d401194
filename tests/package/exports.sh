#!/usr/bin/env bash
# exports.sh LIBKILN LOOKALIKE: libkiln shows nothing but its C interface and needs nothing of HIP, CUDA or LLVM; the
# look-alike of libamdhip64 shows nothing but HIP, and what a caller may ask of the simulator.
set -euo pipefail
failed=0

fail() {
    printf 'FAILED: %s\n' "$*"
    failed=1
}

check_exports() { # library, pattern of the names it may show
    local names others
    names=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $NF}' | sed 's/@.*//' | sort -u) # A: a version's own name
    others=$(grep -vE "$2" <<<"$names" || true)
    [ -z "$others" ] || fail "$1 exports $(wc -l <<<"$others") other symbols, among them $(head -n 5 <<<"$others" | tr '\n' ' ')"
    printf '%s exports %s symbols\n' "${1##*/}" "$(wc -l <<<"$names")"
}

# The C and C++ libraries of every Linux program, and, where the distribution has no static ones, libcrypto and libzstd.
check_needs() {
    local needs others
    needs=$(LC_ALL=C readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    others=$(grep -vE '^(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-x86-64|libcrypto|libzstd)\.so' <<<"$needs" || true)
    [ -z "$others" ] || fail "$1 needs $(tr '\n' ' ' <<<"$others")"
    printf '%s needs %s\n' "${1##*/}" "$(tr '\n' ' ' <<<"$needs")"
}

check_exports "$1" '^kiln_'
check_exports "$2" '^(hip|kiln_sim_)'
check_needs "$1"
check_needs "$2"
exit $failed
