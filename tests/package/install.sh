#!/usr/bin/env bash
# install.sh CMAKE BUILD_FOLDER OUTSIDE_PROJECT: installs kiln, moves the installation, and builds and runs a project that
# knows of it through find_package alone: one program in C++20, one in C11, on the simulator.
set -euo pipefail
cmake=$1 build=$2 outside=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
(cd "$work/moved" && find . -type f | sort)

# Nothing but the installation may be found from here on.
unset KILN_WORKER KILN_HIP_LIBRARY KILN_CUDA_LIBRARY KILN_KERNEL_PATH KILN_SHAPES_PATH KILN_CACHE_PATH
export KILN_CACHE_DIR=$work/cache KILN_DEVICE=sim
"$cmake" -S "$outside" -B "$work/outside" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/configure.log" ||
    { cat "$work/configure.log" && exit 1; }
"$cmake" --build "$work/outside"
"$work/outside/engine_cpp"
"$work/outside/engine_c"
"$work/moved/bin/kiln" --version
test -s "$work/moved/share/kiln/chart.js.license" # of what the page of kiln report carries
test -s "$work/moved/share/man/man1/kiln.1"
test -s "$work/moved/share/man/man1/kiln-bundle-create.1"
if command -v python3 >/dev/null; then
    # Without KILN_LIBRARY: the package finds the libkiln that it was installed with, and that the simulator.
    found=$(env -u KILN_LIBRARY PYTHONPATH="$(dirname "$(find "$work/moved" -path '*/python/kiln')")" python3 -B -c \
        'import kiln; print(kiln.library_path, kiln.Service().device_info(0).simulated)')
    printf 'python: %s\n' "$found"
    [[ $found == "$work/moved/"*" True" ]]
fi
