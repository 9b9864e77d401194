#!/usr/bin/env bash
# engine_on_gpu.sh ENGINE SHARE [COMPILE_FILE]: the example engine on this machine's GPU: AMD's, else NVIDIA's, of which kiln serves `linear`
# alone and everything else runs plain. SHARE holds its tables and its kernels, plain.gfx950.co and plain.sm_90a.co; the latter are
# compiled where COMPILE_FILE is given.
set -euo pipefail
engine=$1 share=$2
if [ -e /dev/kfd ]; then
    device=hip processor=gfx950
elif [ -e /dev/nvidiactl ]; then
    device=cuda processor=sm_90a
else
    echo 'skipped: no GPU: neither /dev/kfd nor /dev/nvidiactl'
    exit 0
fi
fail() { printf 'FAILED: %s\n' "$*" && exit 1; }

if [ $# -ge 3 ]; then
    "$(dirname "${BASH_SOURCE[0]}")/../../tools/examples/engine/kernels/build" "$3" "$share" $processor
fi
out=$(KILN_DEVICE=$device "$engine" --share "$share") || { printf '%s\n' "$out" && fail 'the engine'; }
printf '%s\n' "$out"
[ "$(grep -c '^step .* ok, ' <<<"$out")" = 7 ] || fail 'expected seven steps'
grep -q '^step M=4 replayed: ok' <<<"$out" || fail 'expected a graph to be replayed'
grep -q 'linear 640x512 *kiln_linear_n640_k512' <<<"$out" || fail 'expected linear to be served'
grep -q 'linear 640x512 *plain: M is above' <<<"$out" || fail 'expected linear to decline at M = 18'
grep -q 'edit .*: taken' <<<"$out" || fail 'expected the edit to be taken'
