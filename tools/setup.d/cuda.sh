# NVRTC, which compiles for NVIDIA's GPUs: kiln uses one that is there and does without where there is none, so that this only
# says what it found. Sourced by tools/setup.

# The first libnvrtc in the folders in which kiln looks (runtime/compile/toolchain.hpp), in its order.
find_nvrtc() {
    local prefix folder library prefixes=(/usr/local/cuda) folders=()
    if [ -n "${KILN_CUDA_PREFIX:-}" ]; then
        prefixes=("$KILN_CUDA_PREFIX")
    else
        mapfile -t -O 1 prefixes < <(find /usr/local -maxdepth 1 -name 'cuda-*' 2>/dev/null | sort -rV)
    fi
    for prefix in "${prefixes[@]}"; do
        folders+=("$prefix"/{lib64,lib,targets/x86_64-linux/lib,lib/x86_64-linux-gnu})
    done
    if [ -z "${KILN_CUDA_PREFIX:-}" ]; then
        folders+=(/usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib /usr/local/lib)
        mapfile -t -O "${#folders[@]}" folders < <(cat /etc/ld.so.conf.d/*.conf 2>/dev/null | grep '^/')
    fi
    for folder in "${folders[@]}"; do
        for library in "$folder"/libnvrtc.so.[0-9]*; do
            case ${library##*.so.} in *.* | [0-9] | 1[01]) continue ;; esac
            [ ! -e "$library" ] || { echo "$library" && return; }
        done
    done
    return 1
}

say_cuda() {
    local found
    if found=$(find_nvrtc); then
        say "CUDA (optional): $found is there for sm_ targets"
    else
        say "CUDA (optional): no libnvrtc.so of version 12 or newer${KILN_CUDA_PREFIX:+ in $KILN_CUDA_PREFIX}; nothing is" \
            'compiled for NVIDIA GPUs, and the tests of that are skipped'
    fi
}
