# hipRTC for gfx950: the machine's own, or a private prefix. Sourced by tools/setup.
#
# Beside the prefix stand PREFIX.debs (the packages it was made from, so that it can be made again with no network),
# PREFIX.part.* (one in the making) and PREFIX.lock. Invariants:
#   1. PREFIX was complete and had compiled for gfx950 before it got this name.
#   2. PREFIX.debs has its name only when every package is there.
#   3. Only the holder of PREFIX.lock makes or removes any of them; a PREFIX.part.* that it finds is a dead one's.

rocm_prefix=${KILN_ROCM_PREFIX:-}
if [ -z "$rocm_prefix" ]; then
    [ -n "${XDG_DATA_HOME:-}${HOME:-}" ] || lacking 'neither KILN_ROCM_PREFIX, XDG_DATA_HOME nor HOME says where ROCm may go'
    rocm_prefix=${XDG_DATA_HOME:-$HOME/.local/share}/kiln/rocm
fi
case $rocm_prefix in /*) ;; *) rocm_prefix=$PWD/$rocm_prefix ;; esac
rocm_prefix=${rocm_prefix%/}
rocm_marker=kiln-packages.txt # in a prefix that this script made: what it consists of

# probe [LOADER ARGUMENTS...] NAME: says nothing and succeeds when this hipRTC compiles for gfx950; else prints why. The
# environment is as clean as the compile worker's: no cache that answers in the compiler's place, no foreign libraries.
probe() {
    local library=${*: -1} loader=("${@:1:$#-1}")
    if [ ! -x "$work/probe" ]; then
        cc -O1 -o "$work/probe" "$setup_folder/probe.c" -ldl || lacking 'a C compiler that works'
    fi
    env -i -C "$work" PATH=/usr/bin:/bin TMPDIR="$work" AMD_COMGR_CACHE=0 \
        timeout 120 "${loader[@]}" "$work/probe" "$library" 2>&1
}

# The folders and names in which the compile worker looks (runtime/compile/toolchain.hpp), in its order.
probe_native() {
    local folder library found
    for folder in /opt/rocm/lib /opt/rocm/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
        for library in "$folder"/libhiprtc.so.[0-9]*; do
            case ${library##*.so.} in *.* | [0-6]) continue ;; esac
            [ -e "$library" ] || continue
            found=$(probe "$library") && found=$library && echo "$found" && return
            echo "$library: $found"
            return 1
        done
    done
    echo 'it has no libhiprtc.so of version 7 or newer'
    return 1
}

# Programs of this machine run on the prefix's C library, which may be newer, through the prefix's own loader.
probe_prefix() {
    local libraries=$1/usr/lib/x86_64-linux-gnu name
    name=$(find "$libraries" -maxdepth 1 -name 'libhiprtc.so.*[0-9]' -printf '%f\n' 2>/dev/null | sort | head -n 1)
    [ -n "$name" ] || { echo "no libhiprtc in $libraries" && return 1; }
    probe "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$name"
}

unpack_prefix() { # folder of packages
    local package
    mkdir "$work/prefix"
    for package in "$1"/*.deb; do
        dpkg-deb -x "$package" "$work/prefix" || return 1
        printf '%s\n' "${package##*/}" >>"$work/prefix/$rocm_marker"
    done
}

# Compiling needs neither; tests compare kiln's own declarations with HIP's headers and look its functions up in its library.
has_hip() { # prefix
    [ -e "$1/usr/include/hip/hip_runtime_api.h" ] && compgen -G "$1/usr/lib/x86_64-linux-gnu/libamdhip64.so.[0-9]*" >/dev/null
}

kept_packages_have_hip() { compgen -G "$rocm_prefix.debs/libamdhip64-dev_*.deb" >/dev/null; }
kept_packages_are_whole() { (cd "$rocm_prefix.debs" 2>/dev/null && sha256sum --status -c SHA256SUMS 2>/dev/null); }

make_prefix() { # compiler|hip: what it must have
    local why room
    [ "$(uname -m)" = x86_64 ] || lacking "ROCm for $(uname -m): Debian has it for x86_64 only"
    if [ -e "$rocm_prefix" ] && [ ! -e "$rocm_prefix/$rocm_marker" ]; then
        lacking "$rocm_prefix is there, does not compile for gfx950, and was not made by tools/setup: it is left alone"
    fi
    for name in apt-get dpkg-deb sha256sum; do
        have "$name" || lacking "a hipRTC that compiles for gfx950 (ROCm 7 or newer), or Debian's $name to fetch one"
    done
    room=$(df -Pk "$work" | awk 'NR==2 {print int($4 / 1024)}')
    [ "$room" -ge 600 ] || lacking "600 MB of room beside $rocm_prefix, where $room MB are free"

    if kept_packages_are_whole && { [ "$1" = compiler ] || kept_packages_have_hip; }; then
        say "unpacking the packages kept in $rocm_prefix.debs"
        if unpack_prefix "$rocm_prefix.debs" && why=$(probe_prefix "$work/prefix"); then
            publish_prefix
            return
        fi
        say "they do not make a hipRTC that works (${why:-unpacking failed}): fetching newer ones"
        rm -rf "$work/prefix"
    fi
    download_packages
    say "unpacking $(find "$work/debs" -name '*.deb' | wc -l) packages"
    unpack_prefix "$work/debs" || lacking 'unpacking failed: no room left?'
    why=$(probe_prefix "$work/prefix") || lacking 'what Debian offers now does not compile for gfx950:' "  $why"
    rm -rf "$rocm_prefix.debs"
    mv -T "$work/debs" "$rocm_prefix.debs"
    publish_prefix
}

# One that was moved away for another, which did not come.
restore_prefix() { # folder of what was in the making
    [ ! -e "$1/replaced" ] || [ -e "$rocm_prefix" ] || mv -T "$1/replaced" "$rocm_prefix"
}

publish_prefix() {
    [ ! -e "$rocm_prefix" ] || mv -T "$rocm_prefix" "$work/replaced"
    mv -T "$work/prefix" "$rocm_prefix"
    say "ROCm: compiles for gfx950, now in $rocm_prefix ($(du -sm "$rocm_prefix" | cut -f1) MB; tools/setup --remove removes it)"
}

# kiln looks into the prefix before it looks around the machine, so a prefix that is there has to work; and one that
# KILN_ROCM_PREFIX names has to be there, for kiln then looks nowhere else.
ensure_rocm() { # check|install
    local found
    if found=$(probe_prefix "$rocm_prefix"); then
        say "ROCm: the private one in $rocm_prefix compiles for gfx950"
        if ! has_hip "$rocm_prefix" && [ -e "$rocm_prefix/$rocm_marker" ]; then
            complete_prefix "$1"
        fi
        return
    fi
    if [ ! -e "$rocm_prefix" ]; then
        if [ -n "${KILN_ROCM_PREFIX:-}" ]; then
            found="none in $rocm_prefix, which KILN_ROCM_PREFIX names"
        elif found=$(probe_native); then
            say "ROCm: this machine's own, $found, compiles for gfx950"
            return
        else
            say "ROCm: this machine's own does not serve: $found"
            found="none in $rocm_prefix either"
        fi
    fi
    [ "$1" = install ] || lacking "ROCm: none that compiles for gfx950: $found"
    make_prefix compiler
}

# One that was made before it held HIP's headers is made again with them. It serves without, so that a failure is none of the
# whole set-up's. A job of its own, because errexit does not hold in a command whose failure is looked at.
complete_prefix() { # check|install
    if [ "$1" = check ]; then
        say "ROCm: it has no HIP headers, which tests compare with: tools/setup adds them"
        return
    fi
    set -m # a process group, by which an interruption ends it with what it runs
    make_prefix hip </dev/null &
    job=$!
    set +m
    wait "$job" || say 'ROCm: it stays as it is; the tests that compare with HIP headers are skipped'
    job=''
}

job=''
end_job() {
    local tries=0
    [ -n "$job" ] || return 0
    kill -TERM -- "-$job" 2>/dev/null || return 0
    wait "$job" 2>/dev/null || true
    # What it ran may need a moment more.
    while kill -0 -- "-$job" 2>/dev/null && [ "$tries" -lt 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL -- "-$job" 2>/dev/null || true
}

remove_rocm() {
    if [ -e "$rocm_prefix" ] && [ ! -e "$rocm_prefix/$rocm_marker" ]; then
        lacking "$rocm_prefix was not made by tools/setup: it is left alone"
    fi
    rm -rf "$rocm_prefix" "$rocm_prefix.debs"
    say "removed $rocm_prefix and its packages; what came from Debian by apt-get install stays"
}

# One at a time. The lock's file may be removed by its holder, so what was locked must still be what the name leads to.
lock_rocm() {
    local part
    mkdir -p "$(dirname "$rocm_prefix")" 2>/dev/null || lacking "a folder $(dirname "$rocm_prefix") that may be written"
    while :; do
        exec 9>"$rocm_prefix.lock" || lacking "$rocm_prefix.lock, which may not be written"
        if ! flock -n 9; then
            say 'another set-up is at work, waiting for it'
            flock 9
        fi
        [ "$(stat -Lc %i /proc/self/fd/9)" = "$(stat -c %i "$rocm_prefix.lock" 2>/dev/null)" ] && break
    done
    for part in "$rocm_prefix".part.*; do
        restore_prefix "$part"
        rm -rf "$part"
    done
}
