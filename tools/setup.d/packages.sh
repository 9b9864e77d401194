# Build dependencies. Sourced by tools/setup.
#
# Whether one is there is asked of the compiler and the command line, not of the package database, so that a tool or a
# library that was installed in another way counts, and nothing but a shell is needed to find out.

# package, then how to see that it is there: a command, a header that the compiler finds, a file, or a module that one of the
# path's python3 has.
build_packages='
g++                 cxx20
cmake               cmake-3.25
ninja-build         command:ninja
libfmt-dev          header:fmt/format.h
libspdlog-dev       header:spdlog/spdlog.h
nlohmann-json3-dev  header:nlohmann/json.hpp
libvalijson-dev     header:valijson/validator.hpp
libexpected-dev     header:tl/expected.hpp
libcli11-dev        header:CLI/CLI.hpp
libzstd-dev         header:zstd.h
libssl-dev          header:openssl/evp.h
doctest-dev         header:doctest/doctest.h
libbenchmark-dev    header:benchmark/benchmark.h
libjs-chart.js      file:/usr/share/javascript/chart.js/chart.min.js
python3             command:python3
python3-numpy       python:numpy
python3-yaml        python:yaml
openssl             command:openssl
'
# Wanted by those who change kiln: the checks of its form, that of its manual pages among them.
style_packages='
git                 command:git
clang-format-14     command:clang-format-14
clang-tidy-14       command:clang-tidy-14
groff-base          command:groff
'
# Wanted by the fuzz targets.
fuzz_packages='
clang-14            command:clang++-14
libclang-rt-14-dev  libfuzzer
'

cmake_is_new_enough() {
    local found
    found=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p')
    [ -n "$found" ] && [ "$(printf '%s\n3.25\n' "$found" | sort -V | head -n 1)" = 3.25 ]
}

has_python_module() {
    local python
    while read -r python; do
        "$python" -c "import $1" >/dev/null 2>&1 </dev/null && return
    done < <(type -ap python3)
    return 1
}

links_libfuzzer() {
    printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' |
        clang++-14 -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null >/dev/null 2>&1
}

# Prints the packages of the table on stdin that are not there. All headers are looked for in one run of the compiler.
missing_packages() {
    local package probe headers='' found absent=()
    local -A waiting=()
    while read -r package probe; do
        case $probe in
            '') ;;
            cxx20) printf '#include <ranges>\n#if !__cpp_lib_ranges\n#error\n#endif\n' |
                c++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || absent+=("$package") ;;
            cmake-3.25) cmake_is_new_enough || absent+=("$package") ;;
            libfuzzer) links_libfuzzer || absent+=("$package") ;;
            command:*) have "${probe#command:}" || absent+=("$package") ;;
            python:*) has_python_module "${probe#python:}" || absent+=("$package") ;;
            file:*) [ -e "${probe#file:}" ] || absent+=("$package") ;;
            header:*)
                headers+="#if __has_include(<${probe#header:}>)"$'\n'"found $package"$'\n#endif\n'
                waiting[$package]=1
                ;;
        esac
    done
    while read -r _ found; do
        unset "waiting[$found]"
    done < <(printf '%s' "$headers" | c++ -std=c++20 -E -P -x c++ - 2>/dev/null)
    absent+=("${!waiting[@]}")
    echo "${absent[*]}"
}

ensure_packages() { # check|install, table
    local missing
    missing=$(missing_packages <<<"$2")
    if [ -z "$missing" ]; then
        say 'build dependencies: all there'
        return
    fi
    [ "$1" = install ] || lacking "build dependencies: missing $missing"
    have apt-get || lacking "missing, by their Debian names: $missing" \
        'this is not a Debian system: install them in its own way, then run this again'
    as_root || lacking "missing: $missing" "only root may install them: apt-get install --no-install-recommends $missing"

    say "installing from Debian: $missing"
    # shellcheck disable=SC2086  # a list of package names
    if ! apt_patiently install -y --no-install-recommends $missing; then
        say 'the package lists are missing or stale, updating them'
        apt_patiently update || true # what it could not fetch shows in the next step
        if ! apt_patiently install -y --no-install-recommends $missing; then
            lacking "could not install $missing" "$(apt_errors)" \
                'it takes a network, or a local mirror, and Debian 12 or newer'
        fi
    fi
    missing=$(missing_packages <<<"$2")
    [ -z "$missing" ] || lacking "installed, and yet not to be found: $missing"
}
