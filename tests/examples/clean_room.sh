#!/usr/bin/env bash
# clean_room.sh CMAKE BUILD_FOLDER ENGINE_SOURCE COMPILE_FILE: the example engine where there is nothing but an installed kiln, the
# engine's installation and a bundle for each of its tables: no source, no compiler, no cache, and, where this user may
# change the root folder, no other file but the C and C++ libraries.
#
# The build machine's part is done here first: the engine is built as a project of its own that finds kiln by find_package.
set -euo pipefail
umask 022 # what anybody else may write is no layer
cmake=$1 build=$2 engine=$3 compile_file=$4

for name in $(compgen -e KILN_ || true); do
    case $name in KILN_ROCM_PREFIX | KILN_CUDA_PREFIX) ;; *) unset "$name" ;; esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
room=$work/room
export KILN_DEVICE=sim

say() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" && exit 1; }

say 'the build machine'
"$cmake" --install "$build" --prefix "$room" >"$work/log" || { cat "$work/log" && exit 1; }
"$engine/kernels/build" "$compile_file" "$work/kernels" gfx950
"$cmake" -S "$engine" -B "$work/build" -DCMAKE_PREFIX_PATH="$room" -DCMAKE_UNITY_BUILD=ON -DENGINE_KERNELS="$work/kernels" \
    >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
"$cmake" --build "$work/build" >"$work/log" || { cat "$work/log" && exit 1; }
cp "$engine"/shapes/*.json "$work/kernels"
KILN_CACHE_DIR=$work/kernels/listings KILN_DISABLE=linear,router,moe_sort,fused_moe \
    "$work/build/kiln-example-engine" --share "$work/kernels" 1 >"$work/log" || { cat "$work/log" && exit 1; }
"$cmake" --install "$work/build" --prefix "$room" >"$work/log"
for table in decode decode_edited; do
    KILN_CACHE_DIR=$work/cache "$room/bin/kiln" bundle create --target gfx950 "$engine/shapes/$table.json" -o "$room/$table.kiln" 2>"$work/log" ||
        { cat "$work/log" && exit 1; }
done

# What a program needs of the distribution's libraries, where the room's own root finds them.
for file in "$room"/bin/kiln "$room"/bin/kiln-example-engine "$room"/lib/libkiln.so "$room"/lib/kiln/sim/libamdhip64.so.*; do
    ldd "$file" | grep -o '/[^ ]*'
done | sort -u | while read -r library; do
    case $library in "$work"/*) continue ;; esac
    mkdir -p "$room${library%/*}"
    cp -L "$library" "$room$library"
done
mkdir -p "$room/tmp" "$room/empty"
rm -rf "$room/include" "$work/build" "$work/cache" "$work/kernels"

# enter PROGRAM ARGUMENT...: in the room, from a bare environment. ROOT is what the room's path is called inside.
if [ "$(id -u)" = 0 ] && /usr/sbin/chroot "$room" /bin/kiln --version >/dev/null 2>&1; then
    ROOT='' into=(/usr/sbin/chroot "$room")
elif unshare --map-root-user /usr/sbin/chroot "$room" /bin/kiln --version >/dev/null 2>&1; then
    ROOT='' into=(unshare --map-root-user /usr/sbin/chroot "$room")
else
    ROOT=$room into=()
fi
share=$ROOT/share/kiln-example-engine
enter() {
    env -i PATH=/usr/bin:/bin HOME="$ROOT/empty" TMPDIR="$ROOT/tmp" KILN_DEVICE=sim KILN_JIT=off KILN_CACHE_DIR="$ROOT/cache" \
        KILN_ROCM_PREFIX="$ROOT/empty" KILN_CUDA_PREFIX="$ROOT/empty" "${environment[@]}" "${into[@]}" "$@"
}
bundles=$ROOT/decode.kiln:$ROOT/decode_edited.kiln

say "the clean room${ROOT:+, without a root folder of its own}"
(cd "$room" && find . -maxdepth 2 | sort)
environment=(KILN_CACHE_PATH="$bundles:$share/listings")
enter "$ROOT/bin/kiln-example-engine" --share "$share" | tee "$work/out"
grep -q '^kiln: 0 compiled, 21 from its cache, 21 of them from read-only folders and bundles$' "$work/out" ||
    fail 'expected every kernel of kiln to come out of the bundles'
[ "$(grep -c '^step .* ok, ' "$work/out")" = 7 ] || fail 'expected seven steps'
[ -z "$(find "$room/cache" -name '*.entry' 2>/dev/null)" ] || fail 'expected nothing in the cache'

say 'and without the bundle of the edited table'
environment=(KILN_CACHE_PATH="$ROOT/decode.kiln:$share/listings")
enter "$ROOT/bin/kiln-example-engine" --share "$share" 1 edit="$share/decode_edited.json" 1 | tee "$work/out"
grep -q '^edit .*: refused, going on as before: kiln_router_h512_e64_k10_s1_m8 .* is not in the cache' "$work/out" ||
    fail 'expected the miss by name'
grep -q '^step M=1 replayed: ok' "$work/out" || fail 'expected the engine to go on'

say 'and without any'
environment=(KILN_CACHE_PATH="$share/listings")
! enter "$ROOT/bin/kiln-example-engine" --share "$share" 1 >"$work/out" 2>&1 || fail 'expected a miss'
grep -q ' is not in the cache' "$work/out" || fail "expected the miss by name, found $(cat "$work/out")"
