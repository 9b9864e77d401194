#!/usr/bin/env bash
# stage.sh CHECK_STAGE PLAIN FOREIGN: what tools/cmake/check_stage.sh lets pass and what not. PLAIN is a program that needs the
# C library alone, FOREIGN one that needs a library of its own, by an absolute path.
set -euo pipefail
check=$1 plain=$2 foreign=$3
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

expect() {  # expect STATUS TEXT: of the check on the stage as it is
    local status=0 said
    said=$(bash "$check" "$stage" 2>&1) || status=$?
    if ((status != $1)) || [[ $said != *"$2"* ]]; then
        echo "expected status $1 and '$2', found status $status and: $said" >&2
        exit 1
    fi
}

mkdir -p "$stage/bin" "$stage/lib"
cp "$plain" "$stage/bin/one"
cp "$plain" "$stage/bin/two"
expect 1 'found 2 of that kind'
cp "$plain" "$stage/bin/three"
echo 'no program' >"$stage/bin/text"
expect 0 'stage: 3 programs and libraries'
cp "$foreign" "$stage/bin/four"
expect 1 'needs libkiln_stage_foreign.so'
expect 1 'looks for libraries in /'
rm "$stage/bin/four"
sed 's/^newest=.*/newest=2.2/' "$check" >"$stage/older.sh"
older=$(bash "$stage/older.sh" "$stage" 2>&1) && { echo "expected a refusal of a newer C library, found: $older" >&2 && exit 1; }
[[ $older == *"needs the C library's GLIBC_2."* ]] || { echo "found: $older" >&2 && exit 1; }
truncate -s 41M "$stage/lib/large"
expect 1 'no more than 40 MB'
